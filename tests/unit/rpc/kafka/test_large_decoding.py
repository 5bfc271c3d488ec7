"""Large requests at the server: decoded in steps, counted in the budget, and released when
answered.
"""

from __future__ import annotations

from typing import Any

import pytest

from quorate.quorum.protocol.apis import ApiKey
from quorate.quorum.protocol.schemas.metadata import MetadataRequest, MetadataRequestTopic
from quorate.quorum.rpc.budget import Memory, MemoryLimits
from quorate.quorum.rpc.kafka.connection import SLICED_ABOVE_BYTES, Connection
from quorate.quorum.rpc.kafka.context import ELEMENT_BYTES
from quorate.quorum.rpc.kafka.node_resources import NodeResources
from quorate.quorum.rpc.kafka.request_scheduler import RequestScheduler, SchedulerLimits
from quorate.quorum.rpc.kafka.server import KafkaServer, RequestContext
from tests.unit.rpc.kafka.fakes import FakeClock, FakeLink
from tests.unit.rpc.kafka.test_server import answer, frame

MIB = 1 << 20
ELEMENTS = 20_000


class TickingClock(FakeClock):
    """Each reading of the CPU time costs one millisecond."""

    def cpu_ms(self) -> float:
        self.used_cpu_ms += 1.0
        return self.used_cpu_ms


class SlicedServer:
    """A server with small limits."""

    def __init__(self, request_cpu_ms: float = 2000.0) -> None:
        self.clock = TickingClock()
        self.work = RequestScheduler(self.clock, SchedulerLimits(request_cpu_ms=request_cpu_ms))
        self.memory = Memory(self.clock, MemoryLimits(request_bytes=8 * MIB))
        self.handled: list[tuple[RequestContext, Any]] = []
        self.link = FakeLink()
        server = KafkaServer(
            {ApiKey.METADATA: self.handle},
            self.clock,
            resources=NodeResources(self.clock, self.work, self.memory),
        )
        self.connection: Connection = server.accept(self.link)

    def handle(self, context: RequestContext, request: Any) -> None:
        self.handled.append((context, request))

    def run(self) -> None:
        for _ in range(1000):
            self.clock.advance(1)


def named(count: int) -> MetadataRequest:
    return MetadataRequest(topics=(MetadataRequestTopic(name="t"),) * count)


def test_a_large_request_is_decoded_in_slices_and_then_handled() -> None:
    node = SlicedServer()
    node.connection.on_frame(frame(named(ELEMENTS), 9))
    assert node.handled == []
    assert node.link.paused, "later requests wait"
    node.run()
    assert node.work.slices > 5
    ((context, request),) = node.handled
    assert request == named(ELEMENTS)
    context.respond(answer("c"))
    assert len(node.link.sent) == 1
    assert not node.link.paused


def test_a_request_that_is_not_large_is_handled_immediately() -> None:
    node = SlicedServer()
    request = named(4000)
    assert len(frame(request, 9)) < SLICED_ABOVE_BYTES
    node.connection.on_frame(frame(request, 9))
    assert [each for _, each in node.handled] == [request]
    assert node.work.slices == 0


def test_the_memory_of_its_elements_is_counted_until_the_answer() -> None:
    node = SlicedServer()
    request = frame(named(ELEMENTS), 9)
    node.connection.on_frame(request)
    node.run()
    used_bytes = node.memory.requests.used_bytes
    assert used_bytes == len(request) + ELEMENTS * ELEMENT_BYTES
    node.handled[0][0].respond(answer("c"))
    assert node.memory.requests.used_bytes == 0


def test_a_connection_that_closes_ends_the_decoding() -> None:
    node = SlicedServer()
    node.connection.on_frame(frame(named(ELEMENTS), 9))
    node.connection.on_closed(None)
    node.run()
    assert node.handled == []
    assert len(node.work) == 0
    assert node.memory.requests.used_bytes == 0


def test_decoding_is_cut_off_like_other_work(caplog: pytest.LogCaptureFixture) -> None:
    node = SlicedServer(request_cpu_ms=5.0)
    node.connection.on_frame(frame(named(ELEMENTS), 9))
    node.run()
    assert node.handled == []
    assert node.work.cut_off == 1
    assert node.link.closed, "Metadata has no place for the error"
    assert "cut off after 5 ms" in caplog.text


def test_damage_at_the_end_of_a_large_request_closes_the_connection() -> None:
    node = SlicedServer()
    node.connection.on_frame(frame(named(ELEMENTS), 9)[:-4])
    node.run()
    assert node.handled == []
    assert node.link.closed
