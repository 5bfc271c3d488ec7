"""Idempotent producers: KIP-98, KIP-360, KAFKA-5793 and the answers of Kafka 4."""

from __future__ import annotations

from typing import Any

import pytest

from quorate.broker.partition import partition_producers, producer_state
from quorate.broker.partition.partition import Partition
from quorate.broker.partition.partition_producers import PartitionProducers, ProducersNotLoaded
from quorate.broker.partition.producer_state import (
    BATCHES_KEPT,
    ProducerStates,
    last_sequence_of,
)
from quorate.quorum.log.batches.batch import CONTROL, assign, batches, read_header
from quorate.quorum.protocol.errors import ErrorCode, KafkaError
from tests.unit.partition.harness import batch, partition, value

LAST = 2**31 - 1


@pytest.fixture
def leader() -> Partition:
    leader = partition(1)
    leader.make_leader(value(1, 0, (1,)), now_ms=0)
    return leader


def send(leader: Partition, sequence: int, *, count: int = 1, epoch: int = 0, pid: int = 7) -> int:
    data = batch(count, producer_id=pid, producer_epoch=epoch, base_sequence=sequence)
    return leader.append_as_leader(data, -1, now_ms=0, wall_ms=1000).base_offset


def refused(leader: Partition, sequence: int, **options: Any) -> ErrorCode:
    with pytest.raises(KafkaError) as error:
        send(leader, sequence, **options)
    return error.value.code


def test_in_order_and_gap(leader: Partition) -> None:
    assert [send(leader, sequence) for sequence in range(3)] == [0, 1, 2]
    assert refused(leader, 4) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert leader.log.end_offset == 3


def test_each_of_the_last_five_batches_is_answered_as_the_first_time(leader: Partition) -> None:
    for sequence in range(0, 14, 2):
        send(leader, sequence, count=2)
    for sequence in range(14 - 2 * BATCHES_KEPT, 14, 2):
        assert send(leader, sequence, count=2) == sequence
    assert refused(leader, 2, count=2) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert refused(leader, 12, count=1) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert leader.log.end_offset == 14


def test_duplicate_waits_for_its_own_offsets(leader: Partition) -> None:
    send(leader, 0, count=3)
    data = batch(3, producer_id=7, producer_epoch=0, base_sequence=0)
    again = leader.append_as_leader(data, -1, now_ms=0, wall_ms=1000)
    assert (again.base_offset, again.end_offset) == (0, 3)


def test_a_duplicate_has_the_time_of_its_first_append() -> None:
    leader = partition(1, log_append_time=True)
    leader.make_leader(value(1, 0, (1,)), now_ms=0)
    times = []
    for wall_ms in (77, 99):
        data = batch(1, producer_id=7, producer_epoch=0, base_sequence=0)
        times.append(leader.append_as_leader(data, -1, now_ms=0, wall_ms=wall_ms).append_time_ms)
    assert times == [77, 77]


def test_sequences_wrap_around(leader: Partition) -> None:
    send(leader, LAST - 1, count=4)  # unknown producers may begin anywhere (KIP-360)
    header = read_header(leader.log.read(0, 1 << 20))
    assert last_sequence_of(header) == 1
    assert send(leader, 2) == 4
    assert send(leader, LAST - 1, count=4) == 0
    assert refused(leader, 4) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_sequence_zero_follows_the_last(leader: Partition) -> None:
    send(leader, LAST)
    assert send(leader, 0) == 1


def test_new_epoch_begins_at_zero_and_fences_the_old(leader: Partition) -> None:
    send(leader, 0)
    assert refused(leader, 1, epoch=1) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(leader, 0, epoch=1) == 1
    assert refused(leader, 1, epoch=0) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_what_follows_the_end_of_a_transaction_begins_at_zero() -> None:
    """The end marker raises the epoch and has no sequence number."""
    states = ProducerStates()
    header = read_header(batch(producer_id=7, producer_epoch=0, base_sequence=0))
    states.append(header)
    states.append(header._replace(producer_epoch=1, base_sequence=-1, attributes=CONTROL))
    states.check(header._replace(producer_epoch=1))
    with pytest.raises(KafkaError):
        states.check(header._replace(producer_epoch=1, base_sequence=1))


def test_expired_producers_may_begin_anywhere(leader: Partition) -> None:
    send(leader, 0)
    leader.producers.required().expire(1_000 + 9, 10)
    assert len(leader.producers.required()) == 1
    leader.producers.required().expire(1_000 + 10, 10)
    assert len(leader.producers.required()) == 0
    assert send(leader, 5) == 1


def test_producers_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producer_state, "MAX_PRODUCERS", 10)
    states = ProducerStates()
    header = read_header(batch(producer_id=0, producer_epoch=0, base_sequence=0))
    for producer_id in range(15):
        states.append(header._replace(producer_id=producer_id))
    assert len(states) == 10
    assert 4 not in states.producers


def test_batches_appended_during_a_load_are_counted_once() -> None:
    """Once the last batch was counted twice. It replaced the first of the five batches that a
    producer may send again."""
    follower = partition(2)
    follower.make_follower(value(1, 0, (1, 2)))
    states = ProducerStates()
    for sequence in range(BATCHES_KEPT):
        if sequence == BATCHES_KEPT - 1:
            follower.producers.loaded = None  # as after a restart
            follower.producers.begin_load()
            states.rebuild(header for _, header in batches(follower.log.read(0, 1 << 20)))
        data = batch(producer_id=7, producer_epoch=0, base_sequence=sequence)
        assign(data, sequence, 0)
        follower.append_as_follower(data, wall_ms=1_000)
    assert follower.producers.finish_load(states)
    follower.make_leader(value(2, 1, (2,)), now_ms=0)
    assert [send(follower, sequence) for sequence in range(BATCHES_KEPT)] == [0, 1, 2, 3, 4]
    assert follower.log.end_offset == BATCHES_KEPT


def test_truncation_forgets_what_is_gone(leader: Partition) -> None:
    for sequence in range(3):
        send(leader, sequence)
    leader.truncate_to(2)
    assert send(leader, 2) == 2, "its third batch was cut off, so it is no duplicate"
    leader.truncate_to(0)
    with pytest.raises(ProducersNotLoaded):
        send(leader, 0)
    assert leader.log.end_offset == 0
    leader.producers.begin_load()
    assert leader.producers.finish_load(ProducerStates())
    assert send(leader, 0) == 0


def test_an_empty_log_has_no_producers(leader: Partition) -> None:
    send(leader, 3)
    leader.producers.loaded = None
    leader.producers.begin_load()
    leader.restart_at(7)
    assert send(leader, 0) == 7


def test_a_load_that_missed_batches_reads_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_producers, "MAX_NOTED", 2)
    producers = PartitionProducers(None)
    header = read_header(batch(producer_id=7, producer_epoch=0, base_sequence=0))
    producers.append(header)
    wanted = [producers.wanted]
    producers.begin_load()
    wanted.append(producers.wanted)
    assert wanted == [True, False]
    for sequence in range(3):
        producers.append(header._replace(base_sequence=sequence, base_offset=sequence))
    states = ProducerStates()
    assert not producers.finish_load(states)
    assert producers.loaded is None
    producers.begin_load()
    assert producers.finish_load(states)
    assert producers.required() is states


def test_follower_takes_over_what_the_leader_knew() -> None:
    leader, follower = partition(1), partition(2)
    leader.make_leader(value(1, 0, (1, 2)), now_ms=0)
    follower.make_follower(value(1, 0, (1, 2)))
    for sequence in range(2):
        send(leader, sequence)
    follower.append_as_follower(leader.log.read(0, 1 << 20), wall_ms=0)
    follower.make_leader(value(2, 1, (2,)), now_ms=0)
    assert send(follower, 1) == 1, "R59: the retry finds its first outcome"
    assert send(follower, 2) == 2
