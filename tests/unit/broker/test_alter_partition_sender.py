"""AlterPartitionSender: batches, one request in flight, and retries until there is an answer
(KIP-497).
"""

from __future__ import annotations

import pytest

from quorate.broker.controller.alter_partition_sender import (
    MAX_RETRY_MS,
    RETRY_MS,
    AlterPartitionSender,
)
from quorate.quorum.controller.state.messages import (
    AlterPartitionResponse,
    IsrChange,
    IsrChangeResult,
)
from quorate.quorum.ids import Uuid
from quorate.quorum.protocol.errors import ErrorCode
from tests.unit.broker.controller_double import ControllerDouble
from tests.unit.rpc.kafka.fakes import FakeClock

TOPIC = Uuid(bytes(15) + b"\x07")


def change(partition_id: int) -> IsrChange:
    return IsrChange(
        topic_id=TOPIC,
        partition_id=partition_id,
        leader_epoch=1,
        partition_epoch=3,
        isr=((4, 10), (5, 11)),
        leader_recovery_state=0,
        cause="isr-shrink-lag",
    )


def result(partition_id: int, error: int = 0) -> IsrChangeResult:
    return IsrChangeResult(topic_id=TOPIC, partition_id=partition_id, error=error)


class Sender:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.controller = ControllerDouble()
        self.epoch = 7
        self.sender = AlterPartitionSender(self.clock, self.controller, 4, lambda: self.epoch)
        self.answers: list[IsrChangeResult] = []

    def propose(self, partition_id: int) -> bool:
        return self.sender.propose(change(partition_id), self.answers.append)


def test_what_is_proposed_together_leaves_together_and_the_rest_waits() -> None:
    each = Sender()
    assert each.propose(0)
    assert each.propose(1)
    each.clock.advance(0)
    assert [c.partition_id for c in each.controller.sent[0].changes] == [0, 1]
    assert each.propose(2)
    each.clock.advance(1000)
    assert len(each.controller.sent) == 1, "one request is in flight at a time"
    each.controller.answer(AlterPartitionResponse(error=0, results=(result(0), result(1))))
    each.clock.advance(0)
    assert [c.partition_id for c in each.controller.sent[1].changes] == [2]
    assert [a.partition_id for a in each.answers] == [0, 1]


def test_a_partition_has_one_proposal_at_a_time() -> None:
    each = Sender()
    assert each.propose(0)
    assert not each.propose(0)
    each.clock.advance(0)
    each.controller.answer(AlterPartitionResponse(error=0, results=(result(0),)))
    assert each.propose(0)


def test_an_unknown_outcome_is_sent_again_unchanged_and_never_told_as_a_failure() -> None:
    """The controller may have applied the change, so the proposer keeps the maximal ISR (R57 in
    tests/scenarios)."""
    each = Sender()
    each.propose(0)
    each.clock.advance(0)
    for response in (
        None,
        AlterPartitionResponse(error=ErrorCode.NOT_CONTROLLER),
        AlterPartitionResponse(error=ErrorCode.STALE_BROKER_EPOCH),
    ):
        each.controller.answer(response)
        each.clock.advance(RETRY_MS)
    assert each.answers == []
    assert [request.changes for request in each.controller.sent] == [(change(0),)] * 4


def test_the_broker_epoch_is_that_of_the_moment() -> None:
    each = Sender()
    each.propose(0)
    each.epoch = 9
    each.clock.advance(0)
    assert each.controller.sent[0].broker_epoch == 9


def test_errors_of_one_partition_are_its_own() -> None:
    each = Sender()
    each.propose(0)
    each.propose(1)
    each.clock.advance(0)
    fenced = result(0, ErrorCode.FENCED_LEADER_EPOCH)
    each.controller.answer(AlterPartitionResponse(error=0, results=(fenced, result(1))))
    assert [a.error for a in each.answers] == [ErrorCode.FENCED_LEADER_EPOCH, 0]


def test_a_partition_that_the_answer_left_out_is_sent_again() -> None:
    each = Sender()
    each.propose(0)
    each.propose(1)
    each.clock.advance(0)
    each.controller.answer(AlterPartitionResponse(error=0, results=(result(0),)))
    each.clock.advance(RETRY_MS)
    assert [c.partition_id for c in each.controller.sent[1].changes] == [1]


def test_nothing_leaves_after_close() -> None:
    each = Sender()
    each.propose(0)
    each.sender.close()
    each.clock.advance(1000)
    assert each.controller.sent == []


def test_refusals_in_a_row_are_repeated_more_and_more_slowly(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Once, the sender repeated a request with a stale broker epoch every 50 ms without end, each
    time with a WARN line."""
    each = Sender()
    each.propose(0)
    each.clock.advance(0)
    waits = []
    for _ in range(8):
        each.controller.answer(AlterPartitionResponse(error=ErrorCode.STALE_BROKER_EPOCH))
        sent, waited_ms = len(each.controller.sent), 0
        while len(each.controller.sent) == sent:
            each.clock.advance(10)
            waited_ms += 10
        waits.append(waited_ms)
    assert waits == [50, 100, 200, 400, 800, MAX_RETRY_MS, MAX_RETRY_MS, MAX_RETRY_MS]
    assert len(caplog.records) == 1
    each.controller.answer(AlterPartitionResponse(error=0, results=()))
    each.clock.advance(RETRY_MS)
    each.controller.answer(AlterPartitionResponse(error=ErrorCode.STALE_BROKER_EPOCH))
    sent = len(each.controller.sent)
    each.clock.advance(RETRY_MS)
    assert len(each.controller.sent) == sent + 1, "an answer ends the row"
