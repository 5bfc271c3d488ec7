"""The bytes of a connection in the node's memory budgets, and the times when it is read."""

from __future__ import annotations

from dataclasses import dataclass

from quorate.quorum.protocol.apis import ApiKey
from quorate.quorum.rpc.budget import SMALL_BYTES, Memory, MemoryLimits
from quorate.quorum.rpc.kafka.connection import Connection
from quorate.quorum.rpc.kafka.context import ELEMENT_BYTES
from quorate.quorum.rpc.kafka.node_resources import NodeResources
from quorate.quorum.rpc.kafka.server import KafkaServer, RequestContext, ServerSettings
from tests.unit.rpc.kafka.fakes import FakeClock, FakeLink
from tests.unit.rpc.kafka.test_server import METADATA, frame

MIB = 1 << 20
LIMITS = MemoryLimits(request_bytes=8 * MIB, response_bytes=8 * MIB)


@dataclass
class TellingLink(FakeLink):
    """A link over TCP, which reports if the client does not take its responses."""

    reports_drains: bool = True


class BudgetedServer:
    """A server with small budgets."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.memory = Memory(self.clock, LIMITS)
        self.contexts: list[RequestContext] = []
        self.server = KafkaServer(
            {},
            self.clock,
            raw_handlers={ApiKey.METADATA: lambda context, body: self.contexts.append(context)},
            settings=ServerSettings(),
            resources=NodeResources(self.clock, memory=self.memory),
        )

    def connect(self) -> tuple[Connection, TellingLink]:
        link = TellingLink()
        return self.server.accept(link), link


def large(size: int) -> memoryview:
    return memoryview(bytes(frame(METADATA, 9)) + bytes(size))


def test_requests_in_flight_and_unfinished_frames_are_counted() -> None:
    node = BudgetedServer()
    connection, _ = node.connect()
    request = large(MIB)
    connection.on_frame(request)
    assert node.memory.requests.used_bytes == len(request)
    connection.on_buffered(2 * MIB)
    assert node.memory.requests.used_bytes == len(request) + 2 * MIB
    node.contexts[0].respond_raw(b"")
    assert node.memory.requests.used_bytes == 2 * MIB
    connection.on_closed(None)
    assert node.memory.requests.used_bytes == 0


def test_a_frame_that_is_complete_is_counted_once() -> None:
    """Return the link has reported almost the whole frame as unfinished before."""
    node = BudgetedServer()
    connection, link = node.connect()
    request = large(5 * MIB)
    connection.on_buffered(len(request) - 1)
    connection.on_frame(request)
    assert node.memory.requests.used_bytes == len(request)
    assert not link.aborted


def test_unfinished_frames_beyond_the_budget_close_their_connections() -> None:
    node = BudgetedServer()
    links = []
    for _ in range(40):
        connection, link = node.connect()
        links.append(link)
        connection.on_buffered(MIB)
        assert node.memory.requests.used_bytes <= LIMITS.request_bytes
        node.clock.advance(1)
    assert sum(not each.aborted for each in links) <= 8
    assert not links[-1].aborted, "the oldest pay first"


def test_a_connection_over_its_share_is_not_read_under_pressure_and_later_is() -> None:
    node = BudgetedServer()
    connections = [node.connect() for _ in range(5)]
    for connection, _ in connections:
        connection.on_buffered(MIB)
    assert connections[4][1].paused
    for connection, _ in connections[:4]:
        connection.on_buffered(0)
    assert not connections[4][1].paused


def test_responses_that_the_client_does_not_take_are_counted_and_it_is_not_read() -> None:
    node = BudgetedServer()
    connection, link = node.connect()
    connection.on_frame(frame(METADATA, 9))
    link.pending_bytes = MIB
    node.contexts[0].respond_raw(bytes(MIB))
    assert node.memory.responses.used_bytes == 0
    connection.on_drained(False)
    assert node.memory.responses.used_bytes == MIB
    assert link.paused
    link.pending_bytes = 0
    connection.on_drained(True)
    assert node.memory.responses.used_bytes == 0
    assert not link.paused


def test_responses_that_wait_for_an_earlier_one_are_counted_and_bounded() -> None:
    """A pipeline of fetches waits behind a request without a response."""
    node = BudgetedServer()
    connection, link = node.connect()
    for _ in range(3):
        connection.on_frame(frame(METADATA, 9))
    first, second, third = node.contexts
    third.respond_raw(bytes(2 * MIB))
    assert node.memory.responses.used_bytes >= 2 * MIB
    assert link.paused
    second.respond_raw(bytes(MIB))
    assert node.memory.responses.used_bytes >= 3 * MIB
    first.respond_raw(b"")
    assert node.memory.responses.used_bytes == 0
    assert len(link.sent) == 3
    assert not link.paused


def test_connections_that_fetch_and_do_not_read_pay_for_others() -> None:
    node = BudgetedServer()
    readers = [node.connect() for _ in range(40)]
    for connection, link in readers:
        connection.on_frame(frame(METADATA, 9))
        link.pending_bytes = MIB
        node.contexts[-1].respond_raw(bytes(MIB))
        connection.on_drained(False)
        node.clock.advance(1)
        assert node.memory.responses.used_bytes <= LIMITS.response_bytes
    assert sum(not link.aborted for _, link in readers) <= 8


def test_a_response_is_counted_while_it_is_built() -> None:
    node = BudgetedServer()
    connection, link = node.connect()
    for _ in range(2):
        connection.on_frame(frame(METADATA, 9))
    first, second = node.contexts
    for _ in range(10):
        second.count_elements(1000)
    assert node.memory.responses.used_bytes == 10_000 * ELEMENT_BYTES
    second.respond_raw(bytes(MIB))
    assert MIB < node.memory.responses.used_bytes < MIB + 100, "its bytes, while it waits"
    first.count_elements(10_000)
    first.respond_raw(b"")
    assert node.memory.responses.used_bytes == 0
    assert not link.paused


def test_many_clients_that_let_responses_be_built_pay_for_others() -> None:
    node = BudgetedServer()
    clients = [node.connect() for _ in range(40)]
    for connection, _ in clients:
        connection.on_frame(frame(METADATA, 9))
    for _ in range(100):
        node.clock.advance(1)
        for context, (connection, link) in zip(node.contexts, clients, strict=True):
            if link.aborted:
                connection.on_closed(None)
            else:
                context.count_elements(500)
            assert node.memory.responses.used_bytes <= LIMITS.response_bytes
    assert 0 < sum(not link.aborted for _, link in clients) < 10


def test_an_ordinary_request_is_not_counted_at_all() -> None:
    node = BudgetedServer()
    connection, _ = node.connect()
    connection.on_frame(frame(METADATA, 9))
    node.contexts[0].respond_raw(bytes(SMALL_BYTES * 4))
    assert len(node.memory.requests) == len(node.memory.responses) == 0


def test_a_closed_connection_keeps_no_request() -> None:
    node = BudgetedServer()
    connection, _ = node.connect()
    abandoned: list[int] = []
    connection.on_frame(large(MIB))
    (context,) = node.contexts
    context.on_abandoned = lambda: abandoned.append(1)
    connection.on_closed(None)
    assert abandoned == [1]
    assert len(context.frame) == 0
    context.respond_raw(b"late")
