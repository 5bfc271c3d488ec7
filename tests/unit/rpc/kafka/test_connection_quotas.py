"""The quotas of a node's connections: their number, and waiting requests."""

from __future__ import annotations

import heapq
from typing import Any

import pytest

from quorate.config.node_keys import NODE_KEYS
from quorate.quorum.log_limit import INTERVAL_MS
from quorate.quorum.protocol.apis import ApiKey
from quorate.quorum.protocol.schemas.metadata import MetadataRequest, MetadataResponse
from quorate.quorum.quotas.connection_rates import ConnectionRates
from quorate.quorum.quotas.sampled_rate import Windows
from quorate.quorum.rpc.kafka import connection_quotas as connections
from quorate.quorum.rpc.kafka.connection import CLOSE_TIMEOUT_MS
from quorate.quorum.rpc.kafka.connection_quotas import (
    ALWAYS_TAKEN,
    ConnectionLimits,
    ConnectionQuotas,
)
from quorate.quorum.rpc.kafka.context import RequestConnection
from quorate.quorum.rpc.kafka.server import (
    Connection,
    KafkaServer,
    RequestContext,
    ServerSettings,
)
from quorate.quorum.seams import Address
from tests.unit.rpc.kafka.fakes import FakeClock, FakeLink
from tests.unit.rpc.kafka.test_server import METADATA, frame

ANSWER = MetadataResponse(brokers=(), topics=())


class Client:
    """One connection to a port."""

    def __init__(self, port: Port, host: str) -> None:
        self.contexts: list[RequestContext] = []
        self.link = FakeLink(Address(host, 5000))
        self.connection: Connection = port.server.accept(self.link)
        port.clients[self.connection] = self

    def ask(self, times: int = 1) -> None:
        for _ in range(times):
            self.connection.on_frame(frame(METADATA, 9))

    def answer(self) -> None:
        self.contexts.pop(0).respond(ANSWER)

    def gone(self) -> None:
        self.link.closed = True
        self.connection.on_closed(None)

    def is_open(self) -> bool:
        return not self.link.closed

    def is_read(self) -> bool:
        return not self.link.paused


class Port:
    """A Kafka port with connection quotas."""

    def __init__(self, **limits: Any) -> None:
        self.clock = FakeClock()
        self.connections = ConnectionQuotas(self.clock, ConnectionLimits(**limits))
        self.clients: dict[RequestConnection, Client] = {}
        self.server = KafkaServer({ApiKey.METADATA: self.keep}, self.clock, quotas=self.connections)

    def keep(self, context: RequestContext, request: MetadataRequest) -> None:
        self.clients[context.connection].contexts.append(context)

    def client(self, host: str = "10.0.0.1") -> Client:
        return Client(self, host)


def test_beyond_max_connections_the_one_longest_not_used_makes_room(
    caplog: pytest.LogCaptureFixture,
) -> None:
    port = Port(max_connections=2)
    first, second = port.client(), port.client()
    second.ask()
    port.clock.advance(10)
    first.ask()
    third = port.client()
    assert (first.is_open(), second.is_open(), third.is_open()) == (True, False, True)
    assert "more than 2 connections: it was longest not used" in caplog.text
    second.gone()
    first.gone()
    assert port.client().is_open()
    assert third.is_open()


def test_a_connection_without_a_valid_request_makes_room_first(
    caplog: pytest.LogCaptureFixture,
) -> None:
    port = Port(max_connections=3)
    working = port.client()
    working.ask()
    working.answer()
    port.clock.advance(10_000)
    silent = [port.client() for _ in range(100)]
    assert working.is_open(), "it was not used for longest, but it has sent a request"
    assert [each.is_open() for each in silent] == [False] * 98 + [True] * 2
    assert "more than 3 connections: it has not sent a valid request" in caplog.text
    assert len(caplog.records) == 1, "one line in each interval of LogLimit"
    assert port.connections.displaced == 98
    port.clock.advance(INTERVAL_MS)
    newcomer = port.client()
    assert "97 more like it were not logged" in caplog.text
    newcomer.ask()
    newcomer.answer()
    assert newcomer.link.sent


def test_half_a_request_is_no_valid_one() -> None:
    port = Port(max_connections=2)
    half, working = port.client(), port.client()
    working.ask()
    port.clock.advance(10)
    half.connection.on_buffered(1 << 20)
    port.client()
    assert (half.is_open(), working.is_open()) == (False, True)


def test_the_longest_unused_are_found_without_a_scan_for_each_newcomer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    port = Port(max_connections=500)
    clients = []
    for _ in range(500):
        clients.append(port.client())
        clients[-1].ask()
        clients[-1].answer()
        port.clock.advance(1)
    scans = []

    def counted(count: int, *args: Any, **options: Any) -> Any:
        scans.append(count)
        return heapq.nsmallest(count, *args, **options)

    monkeypatch.setattr("quorate.quorum.rpc.kafka.connection_quotas.nsmallest", counted)
    port.client().ask()
    clients[1].ask()  # it is used again, so another one is unused for longer
    for _ in range(99):
        newcomer = port.client()
        newcomer.ask()
    closed = [index for index, each in enumerate(clients) if not each.is_open()]
    assert closed == [0, *range(2, 101)]
    assert len(scans) == 2


def test_the_default_limit_leaves_files_for_the_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    node = {name: key.default for name, key in NODE_KEYS.items()}
    monkeypatch.setattr(connections, "open_files", lambda: 1024)
    assert ConnectionLimits.of(node).max_connections == 512
    assert ConnectionLimits.of(node, connections.OTHERS_FILES).max_connections == 64
    monkeypatch.setattr(connections, "open_files", lambda: 1 << 20)
    assert ConnectionLimits.of(node).max_connections == connections.MAX_CONNECTIONS
    assert ConnectionLimits.of({**node, "max.connections": 50_000}).max_connections == 50_000
    assert ConnectionLimits.of({**node, "max.connections": 10}).max_connections == 10


def test_connections_of_one_address_are_bounded(caplog: pytest.LogCaptureFixture) -> None:
    port = Port(max_connections_per_ip=2, per_ip_overrides={"10.0.0.9": 3, "10.0.0.8": 0})
    mine = [port.client("10.0.0.1") for _ in range(3)]
    theirs = [port.client("10.0.0.9") for _ in range(4)]
    assert [each.is_open() for each in mine] == [True, True, False]
    assert [each.is_open() for each in theirs] == [True, True, True, False]
    assert not port.client("10.0.0.8").is_open()
    assert "10.0.0.1 already has the configured maximum of 2 connections" in caplog.text
    mine[2].gone()
    assert not port.client("10.0.0.1").is_open()
    mine[0].gone()
    assert port.client("10.0.0.1").is_open()


def test_new_connections_beyond_the_rate_are_read_later() -> None:
    port = Port(max_creation_rate=10)
    at_once = [port.client() for _ in range(10)]
    late = [port.client() for _ in range(3)]
    assert all(each.is_read() for each in at_once)
    assert not any(each.is_read() for each in late)
    assert all(each.is_open() for each in late)
    port.clock.advance(101)
    assert [each.is_read() for each in late] == [True, False, False]
    port.clock.advance(200)
    assert [each.is_read() for each in late] == [True, True, True]
    port.clock.advance(10_000)
    assert all(port.client().is_read() for _ in range(10))


def test_of_each_connection_some_requests_are_taken_and_of_all_so_many_more() -> None:
    port = Port(max_queued_requests=3)
    first, second, third = (port.client() for _ in range(3))
    first.ask(ALWAYS_TAKEN + 2)
    second.ask(ALWAYS_TAKEN + 1)
    assert not second.is_read()
    third.ask(ALWAYS_TAKEN - 1)
    assert third.is_read(), "the pipelines of others do not slow it down"
    third.ask()
    assert not third.is_read(), "its next request would be one too many"
    assert first.is_read(), "until it asks or is answered it does not notice"
    first.ask()
    assert not first.is_read()
    first.answer()
    assert not any(each.is_read() for each in (first, second, third)), "as many as before"
    first.answer()
    assert [each.is_read() for each in (first, second, third)].count(True) > 0
    for each in (first, second, third):
        while each.contexts:
            each.answer()
    assert all(each.is_read() for each in (first, second, third))


def test_what_a_lost_connection_had_asked_waits_no_longer() -> None:
    port = Port(max_queued_requests=2)
    first, second = port.client(), port.client()
    first.ask(ALWAYS_TAKEN + 2)
    second.ask(ALWAYS_TAKEN)
    assert not second.is_read()
    first.gone()
    assert second.is_read()


def test_a_connection_that_is_being_closed_does_not_wait_for_room() -> None:
    """Otherwise the quotas keep it, and with it its client's requests, until there is room."""
    port = Port(max_queued_requests=1)
    busy, client = port.client(), port.client()
    busy.ask(ALWAYS_TAKEN + 2)
    client.ask(ALWAYS_TAKEN)
    client.connection.refuse("it is closed")
    client.connection.on_drained(False)
    client.gone()
    assert client.connection not in port.connections._waiting


def test_limits_may_change_while_connections_are_open() -> None:
    port = Port(max_connections=5)
    clients = [port.client() for _ in range(3)]
    port.connections.limits = ConnectionLimits(max_connections=3)
    assert all(each.is_open() for each in clients)
    port.client()
    assert [each.is_open() for each in clients] == [False, True, True]


def test_a_refused_client_that_takes_nothing_is_cut_off() -> None:
    port = Port()
    client = port.client()
    client.link.pending_bytes = 1
    client.connection.refuse("nonsense")
    assert not client.link.aborted
    port.clock.advance(CLOSE_TIMEOUT_MS)
    assert client.link.aborted


def test_a_request_over_the_allowed_size_closes_its_connection(
    caplog: pytest.LogCaptureFixture,
) -> None:
    link, request = FakeLink(), frame(METADATA, 9)
    server = KafkaServer({}, FakeClock(), settings=ServerSettings(max_request_bytes=8))
    server.accept(link).on_frame(request)
    assert link.closed
    assert f"{len(request)} bytes, more than 8" in caplog.text


def test_a_nodes_limits_are_its_configs() -> None:
    node = {name: key.default for name, key in NODE_KEYS.items()}
    limits = ConnectionLimits.of(node)
    assert (limits.max_idle_ms, limits.max_queued_requests) == (600_000, 500)
    assert limits.max_of_host("10.0.0.1") == 2**31 - 1
    node |= {
        "max.connections": 7,
        "max.connections.per.ip": 3,
        "max.connections.per.ip.overrides": "10.0.0.1:5, [::1]:6, ::2:7",
    }
    limits = ConnectionLimits.of(node)
    assert limits.max_connections == 7
    hosts = ("10.0.0.1", "::1", "::2", "10.0.0.2")
    assert [limits.max_of_host(each) for each in hosts] == [5, 6, 7, 3]


def test_more_connections_than_an_addresss_quota_are_closed_later() -> None:
    """They are not read, and closed after the throttle time. Other addresses are not affected."""
    port = Port()
    rates = ConnectionRates(Windows(2, 1000))
    rates.configure({(("ip", "10.0.0.1"),): {"connection_creation_rate": 2.0}})
    port.connections.rates = rates
    first, second, third = (port.client("10.0.0.1") for _ in range(3))
    other = port.client("10.0.0.2")
    assert (first.is_read(), second.is_read(), other.is_read()) == (True, True, True)
    assert (third.is_read(), third.is_open()) == (False, True)
    port.clock.advance(499)
    assert third.is_open()
    port.clock.advance(1)
    assert not third.is_open()
    assert not third.is_read()
    third.gone()
    port.clock.advance(1000)
    assert port.client("10.0.0.1").is_read()
    assert first.is_open()
