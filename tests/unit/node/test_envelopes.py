"""The slices in which a controller decodes forwarded requests."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import pytest

from quorate.quorum.controller.state.context import Caller
from quorate.quorum.controller.state.messages import EnvelopeRequest, EnvelopeResponse
from quorate.quorum.ids import Uuid
from quorate.quorum.node.controller import controller_queue
from quorate.quorum.node.controller.envelopes import SLICE_MS, WHOLE_BYTES, Envelopes
from quorate.quorum.protocol.apis import ApiKey
from quorate.quorum.protocol.codec import encode
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.topics import DeleteTopicsRequest
from quorate.quorum.rpc.hello import Hello, Peer
from quorate.quorum.rpc.messages import VERSIONS
from quorate.quorum.seams import Address
from tests.unit.rpc.kafka.fakes import FakeClock

VERSION = 5


def peer(node_id: int) -> Peer:
    hello = Hello(
        versions=VERSIONS,
        cluster_id="c",
        node_id=node_id,
        directory_id=Uuid(b"d" * 16),
        roles=("broker",),
        incarnation_id=Uuid(b"i" * 16),
    )
    return Peer(hello, Address("10.0.0.7", node_id))


class Ticking(FakeClock):
    """Each look at the time takes `tick_ms`."""

    tick_ms = 0

    def now_us(self) -> int:
        self.time_ms += self.tick_ms
        return super().now_us()


class Controller:
    """Envelopes whose decisions take `cost_ms` each. `asked` has their client ids."""

    def __init__(self, cost_ms: int = 0) -> None:
        self.clock = Ticking()
        self.cost_ms = cost_ms
        self.asked: list[str] = []
        self.requests: list[Any] = []
        self.errors: list[int] = []
        self.failures: list[Exception] = []
        self.failing = False
        self.envelopes = Envelopes(self.clock, None, self._ask, self._failed)

    def _ask(
        self,
        request: Any,
        caller: Caller,
        source: Hashable,
        size_bytes: int,
        answer: Callable[[object], None],
    ) -> None:
        assert size_bytes > 0
        self.clock.time_ms += self.cost_ms
        self.asked.append(caller.client_id)
        self.requests.append(request)
        if self.failing:
            raise ValueError("in the test")
        answer(b"")

    def _failed(self, peer: Peer, message: object, reply: Any, error: Exception) -> bool:
        self.failures.append(error)
        return True

    def take(self, client_id: str, node_id: int = 1, names: tuple[str, ...] = ("a",)) -> None:
        request = DeleteTopicsRequest(topic_names=names, timeout_ms=1)
        envelope = EnvelopeRequest(
            api_key=ApiKey.DELETE_TOPICS,
            version=VERSION,
            client_id=client_id,
            body=encode(request, VERSION),
        )
        self.envelopes.handle(peer(node_id), envelope, self._reply)

    def _reply(self, response: Any) -> None:
        assert isinstance(response, EnvelopeResponse)
        self.errors.append(response.error)

    def iteration(self) -> None:
        self.clock.advance(0)


def test_an_envelope_that_finds_time_is_decided_immediately() -> None:
    each = Controller()
    each.take("0")
    each.take("1")
    assert each.asked == ["0", "1"]
    each.iteration()
    assert not each.clock.timers


def test_the_rest_of_a_frame_waits_for_later_iterations_and_links_take_turns() -> None:
    each = Controller(cost_ms=SLICE_MS)
    for number in range(4):
        each.take(f"a{number}", 1)
    each.take("b0", 2)
    each.take("b1", 2)
    assert each.asked == ["a0"]
    for expected in ("a1", "b0", "a2", "b1", "a3"):
        each.iteration()
        assert each.asked[-1] == expected
    each.take("c")
    assert each.asked[-1] == "a3", "the time of this iteration is used up"
    each.iteration()
    assert each.asked[-1] == "c"
    assert each.errors == [0] * 7


def test_a_large_request_is_decoded_in_slices() -> None:
    each = Controller()
    each.clock.tick_ms = SLICE_MS
    names = ("",) * (4 * WHOLE_BYTES)
    each.take("large", names=names)
    each.take("next")
    iterations = 0
    while "next" not in each.asked:
        each.iteration()
        iterations += 1
    assert iterations >= 4
    assert each.asked == ["large", "next"]
    assert each.requests[0].topic_names == names


def test_envelopes_beyond_the_part_of_their_link_are_refused_without_decoding(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(controller_queue, "MAX_QUEUED_PER_SOURCE", 2)
    each = Controller(cost_ms=SLICE_MS)
    for number in range(4):
        each.take(str(number))
    assert each.errors == [0, ErrorCode.NOT_CONTROLLER]
    for _ in range(3):
        each.iteration()
    assert each.asked == ["0", "1", "2"]


def test_a_failure_of_a_request_that_waited_reaches_the_boundary() -> None:
    """It must not reach the event loop, which would stop the node."""
    each = Controller(cost_ms=SLICE_MS)
    each.failing = True
    each.take("0")
    each.take("1")
    each.iteration()
    each.iteration()
    assert each.asked == ["0", "1"]
    assert [type(error) for error in each.failures] == [ValueError, ValueError]
    each.failing = False
    each.take("2")
    each.iteration()
    assert each.asked[-1] == "2"


def test_malformed_and_unknown_requests_are_refused() -> None:
    each = Controller()
    for api_key, body, error in (
        (ApiKey.DELETE_TOPICS, b"\xff", ErrorCode.INVALID_REQUEST),
        (ApiKey.DELETE_TOPICS, bytes(2 * WHOLE_BYTES), ErrorCode.INVALID_REQUEST),
        (ApiKey.FETCH, b"", ErrorCode.UNSUPPORTED_VERSION),
        (12345, b"", ErrorCode.UNSUPPORTED_VERSION),
    ):
        envelope = EnvelopeRequest(api_key=api_key, version=VERSION, client_id="", body=body)
        each.envelopes.handle(peer(1), envelope, each._reply)
        assert each.errors.pop() == error
    assert not each.failures
