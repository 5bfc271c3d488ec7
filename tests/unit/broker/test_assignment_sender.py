"""AssignmentSender: batches, one request in flight, backoffs, and the end of an assignment."""

from __future__ import annotations

from quorate.broker.controller.assignment_sender import (
    BATCH_DELAY_MS,
    FIRST_BACKOFF_MS,
    MAX_BACKOFF_MS,
    AssignmentSender,
    Key,
)
from quorate.quorum.controller.state.messages import MAX_ASSIGNMENTS, AssignReplicasToDirsResponse
from quorate.quorum.ids import Uuid
from quorate.quorum.protocol.errors import ErrorCode
from tests.unit.broker.controller_double import ControllerDouble
from tests.unit.rpc.kafka.fakes import FakeClock

TOPIC, A, B = (Uuid(bytes(15) + bytes([each])) for each in (7, 201, 202))


class Sender:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.controller = ControllerDouble()
        self.sender = AssignmentSender(self.clock, self.controller, 4, lambda: 7)
        self.accepted: list[tuple[Key, Uuid]] = []

    def assign(self, index: int, directory: Uuid = A) -> None:
        key = (TOPIC, index)
        self.sender.assign(key, directory, lambda: self.accepted.append((key, directory)))

    def sent(self) -> list[tuple[int, Uuid]]:
        """Return the last request's assignments, after the time in which they are collected."""
        self.clock.advance(BATCH_DELAY_MS)
        return [(index, where) for _, index, where in self.controller.sent[-1].assignments]

    def answer(self, *errors: ErrorCode, error: ErrorCode = ErrorCode.NONE) -> None:
        self.controller.answer(AssignReplicasToDirsResponse(error=error, errors=errors))


def test_assignments_are_collected_and_the_last_one_of_a_replica_counts() -> None:
    each = Sender()
    each.assign(0)
    each.assign(1)
    each.assign(0, B)
    each.clock.advance(BATCH_DELAY_MS - 1)
    assert each.controller.sent == []
    assert each.sent() == [(0, B), (1, A)]
    each.assign(2)
    each.clock.advance(10 * BATCH_DELAY_MS)
    assert len(each.controller.sent) == 1, "one request is in flight"
    each.answer(ErrorCode.NONE, ErrorCode.NONE)
    assert each.accepted == [((TOPIC, 0), B), ((TOPIC, 1), A)]
    assert each.sent() == [(2, A)]
    assert each.sender.pending == 1


def test_a_change_while_the_request_is_in_flight_is_sent_again() -> None:
    """KAFKA-16365: only the accepted assignment of the latest wish is reported."""
    each = Sender()
    each.assign(0, A)
    each.sent()
    each.assign(0, B)
    each.answer(ErrorCode.NONE)
    assert each.accepted == [], "A is not the wish any more"
    assert each.sent() == [(0, B)]


def test_a_failed_request_is_sent_again_after_a_growing_backoff() -> None:
    each = Sender()
    each.assign(0)
    each.sent()
    for failure in range(12):
        if failure % 2:
            each.controller.answer(None)
        else:
            each.answer(error=ErrorCode.STALE_BROKER_EPOCH)
        wait_ms = min(FIRST_BACKOFF_MS << failure, MAX_BACKOFF_MS)
        sent = len(each.controller.sent)
        each.clock.advance(wait_ms - 1)
        assert len(each.controller.sent) == sent
        each.clock.advance(1)
        assert len(each.controller.sent) == sent + 1
    each.answer(ErrorCode.NONE)
    assert each.accepted == [((TOPIC, 0), A)]
    each.clock.advance(MAX_BACKOFF_MS)
    assert each.sender.pending == 0
    assert each.controller.waiting == []


def test_a_refused_assignment_is_dropped() -> None:
    """KAFKA-16886, KAFKA-17190: a replica that does not exist any more blocks no other."""
    each = Sender()
    each.assign(0)
    each.assign(1)
    each.sent()
    each.answer(ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.NONE)
    assert each.accepted == [((TOPIC, 1), A)]
    assert each.sender.pending == 0


def test_a_request_has_a_bounded_number_of_assignments() -> None:
    each = Sender()
    for index in range(MAX_ASSIGNMENTS + 1):
        each.assign(index)
    assert len(each.sent()) == MAX_ASSIGNMENTS
    each.answer(*(ErrorCode.NONE for _ in range(MAX_ASSIGNMENTS)))
    assert each.sent() == [(MAX_ASSIGNMENTS, A)]


def test_nothing_is_sent_after_the_end() -> None:
    each = Sender()
    each.assign(0)
    each.sender.close()
    each.clock.advance(1000)
    assert each.controller.sent == []
