"""Clients that ignore their throttle times, and the node that enforces their quotas.

Each history ends with a sum over everything that the client used, in virtual time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from quorate.quorum.protocol.apis import ApiKey
from quorate.quorum.protocol.codec import encode
from quorate.quorum.protocol.schemas.topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from quorate.quorum.quotas.client_quotas import ClientQuotas
from quorate.quorum.quotas.sampled_rate import Windows
from quorate.quorum.rpc.kafka.context import RequestContext
from quorate.quorum.rpc.kafka.metered_context import MeteredContext
from quorate.quorum.rpc.kafka.metering import Metering
from quorate.quorum.seams import Buffer
from tests.unit.controller.test_mutation_quotas import ask, codes, create, quota_of_two
from tests.unit.rpc.kafka.test_server import METADATA, Served, answer, frame

BYTES_PER_S = 1000
REQUEST_BYTES = 500
SECONDS = 60
BURST_BYTES = BYTES_PER_S * 11


@dataclass
class Impolite:
    """A producer that sends the next request as soon as its connection is read."""

    served: Served
    sent_bytes: int = 0

    def produce(self, context: RequestContext, request: Any) -> None:
        if isinstance(context, MeteredContext):
            context.body_bytes = REQUEST_BYTES
            context.produced()
        self.sent_bytes += REQUEST_BYTES
        context.respond(answer("c"))

    def send_for(self, seconds: int) -> None:
        for _ in range(seconds * 100):
            if self.served.reads():
                self.served.receive(frame(METADATA, 12))
            self.served.clock.advance(10)


def a_producer_that_ignores_its_throttle_time() -> None:
    """Check that the client uses no more than its quota and the burst that the windows allow."""
    served = Served({ApiKey.METADATA: lambda context, request: None})
    client = Impolite(served)
    served.server.routes[ApiKey.METADATA].handle = client.produce
    quotas = ClientQuotas(Windows())
    metering = Metering(served.server, quotas)
    quotas.configure({(("client-id", "me"),): {"producer_byte_rate": float(BYTES_PER_S)}})
    metering.follow()
    client.send_for(SECONDS)
    allowed_bytes = BYTES_PER_S * SECONDS + BURST_BYTES
    assert client.sent_bytes <= allowed_bytes, "the client used more than its quota"
    assert client.sent_bytes >= allowed_bytes // 2, "the client used much less than its quota"


def two_throttle_times_overlap() -> None:
    """Let the controller throttle one request for 100 ms, and the next one in flight for 2 s."""
    times = iter((100, 2000))

    def forward(context: RequestContext, body: Buffer) -> None:
        response = CreateTopicsResponse(topics=(), throttle_time_ms=next(times))
        context.respond_raw(encode(response, 7))

    served = Served({}, {ApiKey.CREATE_TOPICS: forward})
    quotas = ClientQuotas(Windows())
    metering = Metering(served.server, quotas)
    quotas.configure({(("client-id", "me"),): {"controller_mutation_rate": 1.0}})
    metering.follow()
    topic = CreatableTopic(
        name="t", num_partitions=1, replication_factor=1, assignments=(), configs=()
    )
    request = partial(frame, CreateTopicsRequest(topics=(topic,), timeout_ms=1), 7)
    served.receive(request(), request())
    for _ in range(19):
        served.clock.advance(100)
        assert not served.reads(), "the connection is read before its throttle time is over"
    served.clock.advance(100)
    assert served.reads()


def a_client_creates_topics_without_end() -> None:
    """Let a client with a debt ignore the time for which it should wait."""
    driver = quota_of_two()
    made = 0
    for number in range(600):
        driver.run_until(driver.now_ms + 100)
        if codes(ask(driver, create((f"t{number}", 4)))) == [0]:
            made += 4
    assert made <= 2 * 60 + 22 + 4, "the client created more than its quota"
