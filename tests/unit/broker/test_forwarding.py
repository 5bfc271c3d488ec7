"""Admin requests that a broker forwards to the controller: small ones pipelined, large ones one by
one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from quorate.broker.kafka.shared.forwarding import (
    MAX_ENVELOPE_BYTES,
    MAX_FORWARDED_BYTES,
    Forwarding,
    refusal,
)
from quorate.quorum.controller.state.messages import EnvelopeRequest, EnvelopeResponse
from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.protocol.apis import ApiKey
from quorate.quorum.protocol.codec import decode, encode
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from quorate.quorum.rpc.kafka.context import RequestContext
from tests.unit.rpc.kafka.fakes import FakeLink
from tests.unit.rpc.kafka.test_server import Served, frame

VERSION = 6
NONE = EnvelopeResponse(
    error=ErrorCode.NONE, body=encode(DeleteTopicsResponse(responses=()), VERSION)
)


class Controller:
    """A double of the controller, which holds forwarded requests until the test answers them."""

    def __init__(self) -> None:
        self.asked: list[EnvelopeRequest] = []
        self.waiting: list[Callable[[EnvelopeResponse], None]] = []

    def forward(
        self, request: EnvelopeRequest, timeout_ms: int, done: Callable[[EnvelopeResponse], None]
    ) -> None:
        self.asked.append(request)
        self.waiting.append(done)


def delete(name_bytes: int) -> memoryview:
    state = DeleteTopicState(name="t" * name_bytes, topic_id=bytes(16))  # type: ignore[arg-type]
    return frame(DeleteTopicsRequest(topics=(state,), timeout_ms=1000), VERSION)


SMALL, LARGE = delete(10), delete(MAX_FORWARDED_BYTES // 3)


def served() -> tuple[Controller, Forwarding, Served]:
    controller = Controller()
    forwarding = Forwarding(controller)
    return controller, forwarding, Served({}, {ApiKey.DELETE_TOPICS: forwarding.handle})


def test_small_requests_are_pipelined() -> None:
    controller, forwarding, client = served()
    client.receive(*[SMALL] * 20)
    assert len(controller.asked) == 20
    for _ in range(20):
        controller.waiting.pop(0)(NONE)
    assert len(client.link.sent) == 20
    assert not forwarding._queues, "nothing is left behind"


def test_large_requests_wait_for_each_other_and_delay_nobody_else() -> None:
    controller, forwarding, client = served()
    client.receive(*[LARGE] * 5, SMALL)
    assert len(controller.asked) == 2
    other = FakeLink()
    connection = client.server.accept(other)
    connection.on_frame(SMALL)
    assert len(controller.asked) == 3, "another connection's request goes ahead"
    while controller.waiting:
        controller.waiting.pop(0)(NONE)
    assert len(client.link.sent) == 6
    assert len(other.sent) == 1
    assert not forwarding._queues


def test_a_request_beyond_the_bound_goes_alone() -> None:
    controller, _, client = served()
    huge = frame(
        DeleteTopicsRequest(
            topics=(DeleteTopicState(name="t" * 30_000, topic_id=bytes(16)),) * 5,  # type: ignore[arg-type]
            timeout_ms=1000,
        ),
        VERSION,
    )
    client.receive(huge, huge)
    assert len(controller.asked) == 1


def test_a_request_that_no_frame_between_nodes_holds_is_refused() -> None:
    """The broker encoded it again every 20 ms until its timeout, which took 0.1 s each time."""
    controller, forwarding, client = served()
    state = DeleteTopicState(name="t" * 32_000, topic_id=bytes(16))  # type: ignore[arg-type]
    count = MAX_ENVELOPE_BYTES // 32_100
    for more, sent in ((0, 1), (3, 0)):
        request = DeleteTopicsRequest(topics=(state,) * (count + more), timeout_ms=1000)
        client.receive(frame(request, VERSION))
        assert len(controller.asked) == sent
        controller.asked.clear()
        while controller.waiting:
            controller.waiting.pop()(NONE)
    while len(client.link.sent) < 2:
        client.clock.advance(1)
    response = decode(DeleteTopicsResponse, VERSION, client.link.sent[1], 5)
    errors = [each.error_code for each in response.responses]
    assert errors == [ErrorCode.POLICY_VIOLATION] * (count + 3)
    assert not forwarding._queues


def test_what_a_closed_connection_left_waiting_is_discarded() -> None:
    controller, forwarding, client = served()
    client.receive(*[LARGE] * 5)
    client.connection.on_closed(None)
    while controller.waiting:
        controller.waiting.pop(0)(NONE)
    assert len(controller.asked) == 2
    assert not forwarding._queues


def test_a_request_that_the_controller_could_not_carry_out_names_its_items() -> None:
    controller, _, client = served()
    client.receive(SMALL)
    controller.waiting.pop()(EnvelopeResponse(error=ErrorCode.UNKNOWN_SERVER_ERROR))
    response = decode(DeleteTopicsResponse, VERSION, client.link.sent[0], 5)
    assert [each.error_code for each in response.responses] == [ErrorCode.UNKNOWN_SERVER_ERROR]
    assert response.responses[0].error_message is not None
    assert "nothing was changed" in response.responses[0].error_message


def test_a_large_request_is_refused_in_steps() -> None:
    """The decoding of the largest refused request in one step would block the event loop."""
    topics = tuple(DeleteTopicState(name=f"{number:0200}") for number in range(2000))
    body = encode(DeleteTopicsRequest(topics=topics, timeout_ms=1000), VERSION)
    context = Context()
    steps = refusal(cast(RequestContext, context), memoryview(body), ErrorCode.REQUEST_TIMED_OUT)
    assert sum(1 for _ in steps) > 10
    (response,) = context.responses
    assert len(response.responses) == len(topics)
    assert {each.error_code for each in response.responses} == {ErrorCode.REQUEST_TIMED_OUT}


class Context:
    """The part of a request's context that a refusal uses."""

    api_key, version = ApiKey.DELETE_TOPICS, VERSION

    def __init__(self) -> None:
        self.responses: list[DeleteTopicsResponse] = []

    def respond_steps(self, response: DeleteTopicsResponse) -> IncrementalWork[None]:
        self.responses.append(response)
        yield from ()
