"""ControllerClient: the routing to the active controller, and the requests that it may send again
(KIP-590).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from quorate.broker.controller import controller_client
from quorate.broker.controller.controller_client import MAX_FORWARDED, RETRY_MS, ControllerClient
from quorate.quorum.controller.state.messages import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    EnvelopeRequest,
    EnvelopeResponse,
)
from quorate.quorum.ids import NO_NODE
from quorate.quorum.protocol.apis import ApiKey
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.rpc.channel import Channel, FailureKind, RpcFailure
from tests.unit.rpc.kafka.fakes import FakeClock

HEARTBEAT = BrokerHeartbeatRequest(
    broker_id=4, broker_epoch=1, metadata_offset=1, want_fence=False, want_shut_down=False
)
TIMEOUT_MS = 1000
SILENCE_MS = 300


def envelope(number: int, api_key: int = ApiKey.CREATE_TOPICS) -> EnvelopeRequest:
    return EnvelopeRequest(api_key=api_key, version=1, client_id=str(number), body=b"")


def failure(kind: FailureKind) -> RpcFailure:
    return RpcFailure(kind, "in the test")


@dataclass
class FakeChannel:
    sent: list[Any] = field(default_factory=list)
    waiting: list[Callable[[Any], None]] = field(default_factory=list)
    expected_ms: list[int] = field(default_factory=list)

    def expect_frame(self, within_ms: int) -> None:
        self.expected_ms.append(within_ms)

    def request(self, message: Any, timeout_ms: int, done: Callable[[Any], None]) -> None:
        self.sent.append(message)
        self.waiting.append(done)

    def answer(self, response: Any) -> None:
        self.waiting.pop(0)(response)


class Client:
    def __init__(self, *controllers: int) -> None:
        self.clock = FakeClock()
        self.channels = {each: FakeChannel() for each in controllers}
        self.client = ControllerClient(self.clock, self, SILENCE_MS)
        self.answers: list[tuple[int, int]] = []  # number of the envelope, error
        if controllers:
            self.lead(controllers[0])

    def channel(self, controller_id: int) -> Channel | None:
        return cast(Channel | None, self.channels.get(controller_id))

    def lead(self, controller_id: int) -> None:
        self.client.leader_changed(controller_id)
        self.clock.advance(0)

    def forward(self, number: int, api_key: int = ApiKey.CREATE_TOPICS) -> None:
        self.client.forward(
            envelope(number, api_key),
            TIMEOUT_MS,
            lambda response: self.answers.append((number, response.error)),
        )

    def sent(self, controller_id: int) -> list[str]:
        return [each.client_id for each in self.channels[controller_id].sent]

    def sent_envelopes(self, controller_id: int) -> list[str]:
        sent = self.channels[controller_id].sent
        return [each.client_id for each in sent if isinstance(each, EnvelopeRequest)]


def test_requests_wait_for_a_leader_and_leave_in_order() -> None:
    each = Client()
    each.channels[1] = FakeChannel()
    for number in range(3):
        each.forward(number)
    each.lead(1)
    assert each.sent(1) == ["0", "1", "2"]


def test_without_a_leader_in_time_the_outcome_is_a_time_out() -> None:
    each = Client()
    beats: list[Any] = []
    each.forward(0)
    each.client.send(HEARTBEAT, TIMEOUT_MS, beats.append)
    for _ in range(TIMEOUT_MS // RETRY_MS + 1):
        each.clock.advance(RETRY_MS)
    assert each.answers == [(0, ErrorCode.REQUEST_TIMED_OUT)]
    assert beats == [None]


def test_what_was_provably_not_appended_is_sent_again_in_order() -> None:
    each = Client(1, 2)
    each.forward(0)
    each.forward(1)
    each.channels[1].answer(EnvelopeResponse(error=ErrorCode.NOT_CONTROLLER))
    each.channels[1].answer(failure(FailureKind.NOT_SENT))
    each.lead(2)
    assert each.sent(2) == ["0", "1"]
    each.channels[2].answer(EnvelopeResponse(error=0))
    each.channels[2].answer(EnvelopeResponse(error=0))
    assert each.answers == [(0, 0), (1, 0)]


def test_a_leader_that_returns_thousands_of_requests_costs_no_search(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """To find the place of each in the queue took 27 s for 20,000 requests."""

    class Unsearched(deque[Any]):
        def __getitem__(self, index: Any) -> Any:
            raise AssertionError("the queue is searched")

    monkeypatch.setattr(controller_client, "deque", Unsearched)
    each = Client(1, 2)
    each.client._waiting = Unsearched()
    for number in range(6):
        each.forward(number)
    channel = each.channels[1]
    each.channels = {2: each.channels[2]}
    each.forward(6)
    for _ in range(6):  # the last one is answered first
        channel.waiting.pop()(EnvelopeResponse(error=ErrorCode.NOT_CONTROLLER))
    each.lead(2)
    assert each.sent(2) == [str(number) for number in range(7)]


def test_a_bounded_number_of_forwarded_requests_is_at_the_controller() -> None:
    """The controller would refuse the others, and the broker would send them again and again."""
    each = Client(1)
    for number in range(MAX_FORWARDED + 2):
        each.forward(number)
    each.client.send(HEARTBEAT, TIMEOUT_MS, lambda response: None)
    assert len(each.channels[1].sent) == MAX_FORWARDED
    each.clock.advance(RETRY_MS)
    assert each.channels[1].sent[-1] is HEARTBEAT
    each.channels[1].answer(EnvelopeResponse(error=0))
    each.clock.advance(RETRY_MS)
    assert each.sent_envelopes(1)[-1] == str(MAX_FORWARDED)


def test_an_unknown_outcome_is_told_and_never_repeated() -> None:
    for kind in (FailureKind.LOST, FailureKind.TIMED_OUT):
        each = Client(1, 2)
        each.forward(0)
        each.channels[1].answer(failure(kind))
        each.lead(2)
        each.clock.advance(RETRY_MS)
        assert each.sent(2) == []
        assert each.answers == [(0, ErrorCode.REQUEST_TIMED_OUT)]


def test_what_changes_nothing_may_be_asked_again_after_a_lost_link() -> None:
    each = Client(1, 2)
    each.forward(0, ApiKey.DESCRIBE_QUORUM)
    each.channels[1].answer(failure(FailureKind.LOST))
    each.lead(2)
    assert each.sent(2) == ["0"]


def test_none_goes_to_a_new_leader_while_one_at_the_old_is_unresolved() -> None:
    """Otherwise the new leader could apply the second request before the first, which the old
    leader refuses and the client sends again."""
    each = Client(1, 2)
    each.forward(0)
    each.lead(2)
    each.forward(1)
    assert each.sent(2) == []
    each.channels[1].answer(EnvelopeResponse(error=ErrorCode.NOT_CONTROLLER))
    each.clock.advance(RETRY_MS)
    assert each.sent(2) == ["0", "1"]


def test_the_brokers_own_requests_do_not_wait_behind_forwarded_ones() -> None:
    each = Client(1, 2)
    each.forward(0)
    each.lead(2)
    beats: list[Any] = []
    each.client.send(HEARTBEAT, TIMEOUT_MS, beats.append)
    assert each.channels[2].sent == [HEARTBEAT]
    each.channels[2].answer(BrokerHeartbeatResponse(error=0))
    assert len(beats) == 1


def test_a_full_queue_of_forwarded_requests_refuses_no_heartbeat(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The broker was fenced while its clients filled the queue."""
    monkeypatch.setattr(controller_client, "MAX_FORWARDED", 2)
    monkeypatch.setattr(controller_client, "MAX_WAITING", 3)
    each = Client(1)
    for number in range(6):
        each.forward(number)
    beats: list[Any] = []
    each.client.send(HEARTBEAT, TIMEOUT_MS, beats.append)
    each.clock.advance(RETRY_MS)
    assert each.answers == [(5, ErrorCode.REQUEST_TIMED_OUT)], "there is no room for this one"
    assert each.channels[1].sent[-1] == HEARTBEAT
    assert not beats


def test_a_heartbeat_whose_answer_was_lost_is_told_as_none() -> None:
    each = Client(1)
    beats: list[Any] = []
    each.client.send(HEARTBEAT, TIMEOUT_MS, beats.append)
    each.channels[1].answer(failure(FailureKind.LOST))
    assert beats == [None]


def test_a_former_leader_must_send_a_frame_when_another_node_leads() -> None:
    """It may have lost power. Its kernel then confirms nothing, and the request would wait until
    its timeout is over: 30 s for a change of an ISR."""
    each = Client(1, 2)
    each.client.send(HEARTBEAT, TIMEOUT_MS, lambda _: None)
    each.lead(NO_NODE)
    assert each.channels[1].expected_ms == []
    each.lead(2)
    each.lead(2)
    assert [each.channels[node].expected_ms for node in (1, 2)] == [[SILENCE_MS], []]


def test_a_leader_that_leads_again_need_not_send_a_frame() -> None:
    each = Client(1)
    each.client.send(HEARTBEAT, TIMEOUT_MS, lambda _: None)
    each.lead(NO_NODE)
    each.lead(1)
    assert each.channels[1].expected_ms == []


def test_a_leader_with_a_new_link_is_a_former_leader_on_the_old_link() -> None:
    each = Client(1)
    before = each.channels[1]
    each.client.send(HEARTBEAT, TIMEOUT_MS, lambda _: None)
    each.channels[1] = FakeChannel()
    each.lead(1)
    assert before.expected_ms == [SILENCE_MS]


def test_close_answers_everyone_who_waits() -> None:
    each = Client()
    each.forward(0)
    each.client.leader_changed(NO_NODE)
    each.client.close()
    assert each.answers == [(0, ErrorCode.REQUEST_TIMED_OUT)]
    each.forward(1)
    each.clock.advance(0)
    assert each.answers[-1] == (1, ErrorCode.REQUEST_TIMED_OUT)
