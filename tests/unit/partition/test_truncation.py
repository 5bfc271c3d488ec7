"""Divergence and truncation by leader epochs: KIP-101, KIP-279, KAFKA-18723."""

from __future__ import annotations

import pytest

from quorate.broker.partition.partition import Partition
from quorate.broker.partition.truncation import diverging_epoch, truncation_offset
from quorate.quorum.ids import EpochOffset
from quorate.quorum.log.batches.batch import assign, batches
from quorate.quorum.log.files.errors import BrokenChain, CorruptBatch
from quorate.quorum.log.segments.epochs import EpochCache
from quorate.quorum.protocol.errors import ErrorCode, KafkaError
from tests.unit.partition.harness import append, batch, copy_once, fetch, partition, value


def cache(*entries: tuple[int, int]) -> EpochCache:
    return EpochCache([EpochOffset(*each) for each in entries])


@pytest.mark.parametrize(
    ("leader", "own", "end", "expected"),
    [
        pytest.param((1, 5), ((1, 0),), 8, 5, id="same-epoch-leader-ended-earlier"),
        pytest.param((1, 9), ((1, 0), (2, 4)), 8, 4, id="own-later-epoch-goes"),
        pytest.param((3, 9), ((1, 0), (4, 6)), 8, 6, id="kip-279-epoch-unknown-here"),
        pytest.param((0, 2), ((1, 3),), 8, 2, id="older-than-all-own"),
        pytest.param((2, 20), ((1, 0), (2, 4)), 8, 8, id="leader-is-ahead"),
        pytest.param((9, 3), (), 0, 0, id="no-epochs"),
    ],
)
def test_truncation_offset(
    leader: tuple[int, int], own: tuple[tuple[int, int], ...], end: int, expected: int
) -> None:
    assert truncation_offset(EpochOffset(*leader), cache(*own), end) == expected


def test_diverging_epoch() -> None:
    assert diverging_epoch(2, 5, EpochOffset(2, 5)) is None
    assert diverging_epoch(2, 6, EpochOffset(2, 5)) == EpochOffset(2, 5)
    assert diverging_epoch(2, 3, EpochOffset(1, 4)) == EpochOffset(1, 4)


def pair() -> tuple[Partition, Partition]:
    return partition(1), partition(2)


def bytes_of(replica: Partition) -> bytes:
    return bytes(replica.log.read(0, 1 << 20))


def lead(leader: Partition, follower: Partition, leader_id: int, epoch: int) -> None:
    leader.make_leader(value(leader_id, epoch, (1, 2)), now_ms=0)
    follower.make_follower(value(leader_id, epoch, (1, 2)))


def test_r53_kip101_follower_restarts_behind_the_high_watermark() -> None:
    """A follower with an old high watermark restarts, and is elected before it has fetched. Neither
    role truncates its log."""
    a, b = pair()
    lead(a, b, 1, 1)
    append(a, 2)
    copy_once(a, b, 2)
    copy_once(a, b, 2)
    assert a.high_watermark == 2
    restarted = partition(2, log=b.log)  # type: ignore[arg-type]  # its watermark is forgotten
    assert restarted.high_watermark == 0
    restarted.make_follower(value(1, 1, (1, 2)))
    assert restarted.log.end_offset == 2
    restarted.make_leader(value(2, 2, (2,)), now_ms=0)
    assert restarted.log.end_offset == 2
    assert restarted.high_watermark == 2


def test_kip101_both_lose_power_and_diverge_at_the_same_offset() -> None:
    """Scenario 2 of KIP-101: the offsets are equal and the records differ. Only the epochs show
    it."""
    a, b = pair()
    lead(a, b, 1, 1)
    append(a, 1)
    copy_once(a, b, 2)
    a.append_as_leader(batch(1, b"only on a"), 1, now_ms=0, wall_ms=0)
    b.make_leader(value(2, 2, (2,)), now_ms=0)
    b.append_as_leader(batch(1, b"only on b"), 1, now_ms=0, wall_ms=0)
    assert a.log.end_offset == b.log.end_offset == 2
    lead(b, a, 2, 3)
    for _ in range(4):
        copy_once(b, a, 1)
    assert bytes_of(a) == bytes_of(b)


def test_r54_kip279_double_failover_with_an_epoch_the_leader_never_had() -> None:
    """The leader's next smaller epoch ends inside of an epoch that the leader never had. A
    truncation to that offset alone would leave the logs different (KIP-279)."""
    a, b = pair()
    lead(a, b, 1, 1)
    append(a, 10)
    copy_once(a, b, 2)
    for epoch in (2, 4):  # b leads alone twice and appends what a never gets
        b.make_leader(value(2, epoch, (1, 2)), now_ms=0)
        for _ in range(3):
            append(b, 1, acks=1)
    for epoch in (3, 5):
        a.make_leader(value(1, epoch, (1, 2)), now_ms=0)
        append(a, 5, acks=1)
    lead(a, b, 1, 6)
    rounds = 0
    while b.log.end_offset != a.log.end_offset or bytes_of(a) != bytes_of(b):
        copy_once(a, b, 2)
        rounds += 1
        assert rounds < 8
    assert bytes_of(a) == bytes_of(b)


def test_a_leader_that_appended_nothing_still_leaves_its_epoch() -> None:
    a, b = pair()
    lead(a, b, 1, 1)
    append(a, 2)
    copy_once(a, b, 2)
    a.make_leader(value(1, 5, (1, 2)), now_ms=0)
    lead(b, a, 2, 6)
    append(b, 1)
    for _ in range(3):
        copy_once(b, a, 1)
    assert bytes_of(a) == bytes_of(b)


def test_diverging_fetch_proves_nothing() -> None:
    """The offset of a diverging fetch must not count as replicated, because the records below it
    differ."""
    a, b = pair()
    lead(a, b, 1, 1)
    append(a, 2)
    copy_once(a, b, 2)
    b.make_leader(value(2, 2, (1, 2)), now_ms=0)
    append(b, 3, acks=1)
    a.make_leader(value(1, 3, (1, 2)), now_ms=0)
    append(a, 3)
    b.make_follower(value(1, 3, (1, 2)))
    watermark = a.high_watermark
    assert fetch(a, 2, 5, last_fetched_epoch=2) == EpochOffset(1, 2)
    assert a.high_watermark == watermark


def test_fetch_outside_of_the_log() -> None:
    a, _ = pair()
    a.make_leader(value(1, 1, (1, 2)), now_ms=0)
    append(a, 2)
    for offset, epoch in ((3, -1), (-1, 1), (0, 7)):
        with pytest.raises(KafkaError) as refused:
            fetch(a, 2, offset, last_fetched_epoch=epoch)
        assert refused.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_kafka18723_follower_takes_no_batch_of_an_epoch_above_its_own() -> None:
    """The follower's log would differ from its leader's, and no fetch would show it."""
    _, b = pair()
    b.make_follower(value(1, 3, (1, 2)))
    first, second = batch(2), batch(1)
    assign(first, 0, 3)
    assign(second, 2, 4)
    b.append_as_follower(first + second, wall_ms=0)
    assert b.log.end_offset == 2
    headers = [header for _, header in batches(b.log.read(0, 1 << 20))]
    assert [each.leader_epoch for each in headers] == [3]


def test_follower_watermark_is_bounded_by_its_end_and_by_truncation_only() -> None:
    a, b = pair()
    lead(a, b, 1, 1)
    append(a, 4)
    copy_once(a, b, 2)
    b.leader_high_watermark(9)
    assert b.high_watermark == 4
    b.leader_high_watermark(1)
    assert b.high_watermark == 4, "R61: a new leader may know less for a while"
    b.truncate_to(0)
    assert b.high_watermark == 0
    b.restart_at(7)
    assert (b.high_watermark, b.log.end_offset) == (7, 7)


def test_old_metadata_is_ignored() -> None:
    a, _ = pair()
    a.make_leader(value(1, 5, (1, 2), partition_epoch=9), now_ms=0)
    assert not a.make_follower(value(2, 4, (1, 2), partition_epoch=8))
    assert not a.make_leader(value(1, 5, (1,), partition_epoch=8), now_ms=0)
    assert a.leadership is not None
    assert a.leadership.isr.committed == (1, 2)


def test_fetching_begins_anew_with_a_leader_epoch_and_not_with_an_isr() -> None:
    _, b = pair()
    assert b.make_follower(value(1, 5, (1, 2), partition_epoch=9))
    assert not b.make_follower(value(1, 5, (1,), partition_epoch=10))
    assert b.make_follower(value(3, 6, (1,), partition_epoch=11))


def test_leader_epoch_of_requests() -> None:
    a, b = pair()
    lead(a, b, 1, 5)
    assert a.leader_error() is ErrorCode.NONE
    assert a.leader_error(5) is ErrorCode.NONE
    assert a.leader_error(4) is ErrorCode.FENCED_LEADER_EPOCH
    assert a.leader_error(6) is ErrorCode.UNKNOWN_LEADER_EPOCH
    assert b.leader_error() is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert b.leader_error(4) is ErrorCode.FENCED_LEADER_EPOCH
    with pytest.raises(KafkaError):
        append(b, 1)


def test_damaged_batch_that_begins_below_an_empty_log_leaves_it_as_it_is() -> None:
    """test_log_starts.py has the case of a leader's log that starts inside of a batch."""
    follower = partition(2)
    follower.make_follower(value(1, 0, (1, 2)))
    follower.restart_at(4)
    data = batch(10)
    data[-1] ^= 1
    with pytest.raises(CorruptBatch):
        follower.append_as_follower(data, wall_ms=1_000)
    assert (follower.log.start_offset, follower.log.end_offset) == (4, 4)
    follower.append_as_follower(batch(10), wall_ms=1_000)
    assert (follower.log.start_offset, follower.log.end_offset) == (4, 10)
    assert follower.high_watermark == 4


@pytest.mark.parametrize(("base_offset", "count"), [(0, 4), (0, 3), (5, 1)])
def test_batch_that_misses_the_end_of_an_empty_log_is_not_its_first(
    base_offset: int, count: int
) -> None:
    follower = partition(2)
    follower.make_follower(value(1, 0, (1, 2)))
    follower.restart_at(4)
    data = batch(count)
    assign(data, base_offset, 0)
    with pytest.raises(BrokenChain):
        follower.append_as_follower(data, wall_ms=1_000)
    assert (follower.log.start_offset, follower.log.end_offset) == (4, 4)


def test_batches_that_break_their_own_chain_leave_an_empty_log_as_it_is() -> None:
    """The first batch begins below the empty log. A log that was reset for it would end below the
    high watermark, and an assertion would stop the node when it leads next."""
    follower = partition(2)
    follower.make_follower(value(1, 0, (1, 2)))
    follower.restart_at(4)
    second = batch(1)
    assign(second, 5, 0)
    with pytest.raises(BrokenChain):
        follower.append_as_follower(bytes(batch(10)) + second, wall_ms=1_000)
    assert (follower.log.start_offset, follower.log.end_offset) == (4, 4)
    follower.make_leader(value(2, 1, (2,)), now_ms=0)
    assert follower.high_watermark == 4
