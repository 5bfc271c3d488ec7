"""Requests of clients with quotas: the throttle time in each response, and muted connections."""

from __future__ import annotations

from dataclasses import fields
from functools import partial
from typing import Any

import pytest

from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.principal import ANONYMOUS, Principal
from quorate.quorum.protocol import headers
from quorate.quorum.protocol.apis import APIS, ApiKey
from quorate.quorum.protocol.codec import decode, encode
from quorate.quorum.protocol.schemas.metadata import MetadataRequest, MetadataResponse
from quorate.quorum.protocol.schemas.topics import CreateTopicsRequest, CreateTopicsResponse
from quorate.quorum.quotas.client_quotas import ClientQuotas
from quorate.quorum.quotas.matching import Quotas
from quorate.quorum.quotas.sampled_rate import Windows
from quorate.quorum.rpc.kafka.metered_context import MeteredContext, begins_with_throttle_time
from quorate.quorum.rpc.kafka.metering import Metering, metered
from quorate.quorum.rpc.kafka.server import RequestContext
from quorate.quorum.seams import Buffer
from tests.unit.rpc.kafka.test_server import METADATA, Served, answer, frame

TEN_PERCENT: Quotas = {(("client-id", "me"),): {"request_percentage": 10.0}}
V12 = 12


class Port(Served):
    """A server whose handler uses `cost_ms` of CPU and answers immediately."""

    def __init__(self, quotas: Quotas, cost_ms: float = 0.0, *, slow: bool = False) -> None:
        super().__init__({ApiKey.METADATA: self.handle})
        self.cost_ms = cost_ms
        self.slow = slow
        self.quotas = ClientQuotas(Windows())
        self.metering = Metering(self.server, self.quotas)
        self.set(quotas)

    def set(self, quotas: Quotas) -> None:
        self.quotas.configure(quotas)
        self.metering.follow()

    def handle(
        self, context: RequestContext, request: MetadataRequest
    ) -> IncrementalWork[None] | None:
        self.contexts.append(context)
        if self.slow:
            return self.steps(context)
        self.clock.used_cpu_ms += self.cost_ms
        context.respond(answer("c"))
        return None

    def steps(self, context: RequestContext) -> IncrementalWork[None]:
        self.clock.used_cpu_ms += self.cost_ms
        yield
        yield from context.respond_steps(answer("c"))

    def throttle_times(self) -> list[int]:
        bodies = [headers.response_body(memoryview(each), 1) for each in self.link.sent]
        return [decode(MetadataResponse, V12, each).throttle_time_ms for each in bodies]


def test_a_client_above_its_share_of_cpu_is_told_so_and_muted() -> None:
    """1,500 ms in the 10 s of the windows are 15 percent. The time is that of one window at most,
    and the connection is not read for that time (KIP-219)."""
    port = Port(TEN_PERCENT, cost_ms=900)
    port.receive(frame(METADATA, V12))
    assert (port.throttle_times(), port.reads()) == ([0], True)
    port.cost_ms = 105
    port.receive(frame(METADATA, V12))
    assert port.throttle_times() == [0, 50]
    assert not port.reads(), "the response left, and the connection is muted"
    port.clock.advance(49)
    assert not port.reads()
    port.clock.advance(1)
    assert port.reads()
    port.cost_ms = 5000
    port.receive(frame(METADATA, V12))
    assert port.throttle_times()[-1] == 1000


def test_another_client_is_not_throttled() -> None:
    port = Port(TEN_PERCENT, cost_ms=5000)
    port.receive(frame(METADATA, V12, client_id="other"), frame(METADATA, V12, client_id=None))
    assert (port.throttle_times(), port.reads()) == ([0, 0], True)


def test_the_longest_of_overlapping_pauses_counts() -> None:
    """The timer of the shorter pause must not end the longer one."""
    port = Port({})
    port.connection.pause_reading_for(50)
    port.connection.pause_reading_for(200)
    port.connection.pause_reading_for(10)
    port.clock.advance(50)
    assert not port.reads()
    port.clock.advance(149)
    assert not port.reads()
    port.clock.advance(1)
    assert port.reads()
    port.connection.pause_reading_for(10)
    assert not port.reads()
    port.clock.advance(10)
    assert port.reads()


def test_a_closed_connection_leaves_no_timer_of_its_pause() -> None:
    """A throttle time may be days. A client that reconnects in a loop must not fill the memory."""
    port = Port({})
    port.connection.pause_reading_for(1_000_000_000)
    assert port.clock.waiting > 0
    port.connection.on_closed(None)
    port.connection.pause_reading_for(1_000_000_000)
    assert port.clock.waiting == 0


def test_two_requests_in_flight_mute_for_the_longer_time() -> None:
    port = Port(TEN_PERCENT, cost_ms=2000)
    port.receive(frame(METADATA, V12), frame(METADATA, V12, client_id="other"))
    assert port.throttle_times() == [1000, 0]
    port.clock.advance(999)
    assert not port.reads()


def test_cpu_of_slices_counts() -> None:
    """A slice that ends after the response counts for the next request."""
    port = Port(TEN_PERCENT, cost_ms=3000, slow=True)
    port.receive(frame(METADATA, V12))
    for _ in range(20):
        port.clock.advance(1000)
    first = port.throttle_times()
    assert len(first) == 1
    port.slow, port.cost_ms = False, 0
    port.receive(frame(METADATA, V12))
    assert max(port.throttle_times()) > 0


def test_the_cpu_of_a_later_callback_counts() -> None:
    """A Produce that waits for its followers is answered from a callback."""
    port = Port(TEN_PERCENT)
    done: list[Any] = []

    def handle(context: RequestContext, request: Any) -> None:
        done.append(context.callback(partial(later, context)))

    def later(context: RequestContext) -> None:
        port.clock.used_cpu_ms += port.cost_ms
        context.respond(answer("c"))

    port.server.routes[ApiKey.METADATA].handle = metered(handle)
    for cost_ms, throttle_ms in ((900, 0), (105, 50)):
        port.cost_ms = cost_ms
        port.receive(frame(METADATA, V12))
        assert port.reads()
        port.clock.used_cpu_ms += 50_000  # others
        done.pop()()
        assert port.throttle_times()[-1] == throttle_ms
        assert port.reads() == (not throttle_ms)


def test_a_port_without_quotas_is_not_metered() -> None:
    """Metering begins with the first quota and ends with the last."""
    port = Port({})
    plain = port.server.routes[ApiKey.METADATA].handle
    port.receive(frame(METADATA, V12))
    assert type(port.contexts[-1]) is RequestContext
    assert plain == port.handle
    port.set({(("user", None),): {"controller_mutation_rate": 1.0}})
    port.receive(frame(METADATA, V12))
    assert type(port.contexts[-1]) is MeteredContext
    port.set({(("ip", None),): {"connection_creation_rate": 1.0}})
    port.receive(frame(METADATA, V12))
    assert type(port.contexts[-1]) is RequestContext
    assert port.server.routes[ApiKey.METADATA].handle == plain


@pytest.mark.parametrize(("cpu_ms", "expected"), [(0, 700), (2000, 1000)])
def test_the_controllers_throttle_time_mutes_the_client(cpu_ms: float, expected: int) -> None:
    """The response of a forwarded request arrives encoded. The longer time is in it."""
    port = Port(TEN_PERCENT)
    given = encode(CreateTopicsResponse(topics=(), throttle_time_ms=700), 7)

    def forward(context: RequestContext, body: Buffer) -> None:
        port.clock.used_cpu_ms += cpu_ms
        context.respond_raw(given)

    served = Served({}, {ApiKey.CREATE_TOPICS: forward})
    served.clock = served.server.clock = port.clock
    served.connection = served.server.accept(served.link)
    metering = Metering(served.server, port.quotas)
    metering.follow()
    served.receive(frame(CreateTopicsRequest(topics=(), timeout_ms=1), 7))
    (sent,) = served.link.sent
    body = headers.response_body(memoryview(sent), 1)
    assert decode(CreateTopicsResponse, 7, body).throttle_time_ms == expected
    assert not served.reads()
    port.clock.advance(expected - 1)
    assert not served.reads()
    port.clock.advance(1)
    assert served.reads()


def test_every_response_has_room_for_the_throttle_time() -> None:
    """Either it begins with the field, or the version has none, or its handler writes it."""
    elsewhere = set()
    for key, api in APIS.items():
        names = {each.name for each in fields(api.response)}  # type: ignore[arg-type]
        for version in range(api.min_version, api.max_version + 1):
            if "throttle_time_ms" in names and not begins_with_throttle_time(key, version):
                elsewhere.add(api.name)
    assert elsewhere >= {"Produce", "ApiVersions", "OffsetDelete"}
    assert begins_with_throttle_time(ApiKey.FETCH, 12)
    assert not begins_with_throttle_time(ApiKey.DESCRIBE_QUORUM, 0)
    forwarded = {ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS, ApiKey.CREATE_PARTITIONS}
    for key in forwarded:
        api = APIS[key]
        for version in range(api.min_version, api.max_version + 1):
            assert begins_with_throttle_time(key, version)


def test_the_quota_of_a_user_applies_to_its_authenticated_connections() -> None:
    for principal, expected in ((Principal("User", "alice"), [0, 50]), (ANONYMOUS, [0, 0])):
        port = Port({(("user", "alice"),): {"request_percentage": 10.0}}, cost_ms=900)
        port.connection.principal = principal
        port.receive(frame(METADATA, V12))
        port.cost_ms = 105
        port.receive(frame(METADATA, V12))
        assert port.throttle_times() == expected
