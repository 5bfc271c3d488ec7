"""The journal reports appended records in order when they are committed, or reports an error."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from quorate.broker.groups.guarded import Guard
from quorate.broker.groups.records import GroupKey, GroupRecord, decode_record
from quorate.broker.groups.replicated_journal import ReplicatedJournal
from quorate.quorum.ids import Uuid
from quorate.quorum.log.batches.batch import batches, records_of
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.hot import ProducePartition, ProducePartitionResult
from tests.unit.rpc.kafka.fakes import FakeClock

TOPIC_ID = Uuid(b"\x07" * 16)
RECORD = GroupRecord(GroupKey(group="g"), None)


class Partition:
    """Stands for a partition: reports `now` immediately, or keeps the callbacks."""

    def __init__(self) -> None:
        self.now: ErrorCode | None = None
        self.appended: list[ProducePartition] = []
        self.waiting: list[Callable[[ErrorCode], None]] = []

    def append(
        self,
        appends: Sequence[ProducePartition],
        acks: int,
        timeout_ms: int,
        done: Callable[[Sequence[ProducePartitionResult]], None],
        *,
        internal: bool = False,
    ) -> None:
        assert (acks, internal) == (-1, True)
        (wanted,) = appends
        self.appended.append(wanted)

        def answer(error: ErrorCode) -> None:
            done([ProducePartitionResult(wanted.topic, wanted.topic_id, wanted.partition, error)])

        if self.now is not None:
            answer(self.now)
        else:
            self.waiting.append(answer)


doubts: list[Exception] = []


def journal_on(partition: Partition) -> ReplicatedJournal:
    return ReplicatedJournal(FakeClock(), partition.append, TOPIC_ID, 3, guard=Guard(doubts.append))


def test_answers_wait_for_what_was_appended_before_them() -> None:
    partition = Partition()
    journal = journal_on(partition)
    told: list[tuple[str, ErrorCode]] = []
    journal.when_committed(lambda error: told.append(("before", error)))
    assert journal.append([RECORD]) == ErrorCode.NONE
    journal.when_committed(lambda error: told.append(("first", error)))
    journal.append([RECORD])
    journal.when_committed(lambda error: told.append(("second", error)))
    assert [name for name, _ in told] == ["before"]
    partition.waiting[0](ErrorCode.NONE)
    assert [name for name, _ in told] == ["before", "first"]
    partition.waiting[1](
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    )  # this append is committed, too
    assert told[-1] == ("second", ErrorCode.NONE)


def test_a_refused_append_is_told_at_once_and_holds_nobody_up() -> None:
    partition = Partition()
    partition.now = ErrorCode.NOT_ENOUGH_REPLICAS
    journal = journal_on(partition)
    assert journal.append([RECORD]) == ErrorCode.NOT_ENOUGH_REPLICAS
    told: list[ErrorCode] = []
    journal.when_committed(told.append)
    assert told == [ErrorCode.NONE]


def test_a_waiting_append_fails_once_when_leadership_is_lost() -> None:
    partition = Partition()
    journal = journal_on(partition)
    told: list[ErrorCode] = []
    journal.append([RECORD])
    journal.when_committed(told.append)
    journal.append([RECORD])
    journal.when_committed(told.append)
    for answer in partition.waiting:
        answer(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert told == [ErrorCode.NOT_COORDINATOR] * 2
    assert journal.append([RECORD]) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    journal.when_committed(told.append)
    assert told[-1] == ErrorCode.NOT_COORDINATOR


def test_records_go_as_one_batch_to_the_partition() -> None:
    partition = Partition()
    partition.now = ErrorCode.NONE
    journal_on(partition).append([RECORD, RECORD])
    (wanted,) = partition.appended
    assert (wanted.topic_id, wanted.partition) == (TOPIC_ID, 3)
    assert wanted.records is not None
    ((position, header),) = batches(wanted.records)
    found = list(records_of(wanted.records, position, header))
    assert [decode_record(each.key or b"", each.value) for each in found] == [RECORD, RECORD]


def test_a_record_that_cannot_be_read_back_is_not_appended() -> None:
    partition = Partition()
    journal = journal_on(partition)
    for group in ("g" * 40_000, "g\ud800"):
        unreadable = GroupRecord(GroupKey(group=group), None)
        assert journal.append([RECORD, unreadable]) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert not partition.appended


def test_a_callback_that_raises_reaches_the_guard_and_spares_the_partition() -> None:
    partition = Partition()
    journal = journal_on(partition)
    journal.append([RECORD])
    answers: list[ErrorCode] = []

    def fail(error: ErrorCode) -> None:
        raise ZeroDivisionError

    journal.when_committed(fail)
    journal.when_committed(answers.append)
    partition.waiting[0](ErrorCode.NONE)
    assert answers == [ErrorCode.NONE]
    assert isinstance(doubts.pop(), ZeroDivisionError)
