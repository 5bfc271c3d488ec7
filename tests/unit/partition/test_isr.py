"""The ISR as its leader manages it: KIP-497, KIP-841, KIP-903, KIP-966, KAFKA-7128."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quorate.broker.partition.isr_states import Committed, PendingExpand, PendingShrink
from quorate.quorum.ids import Uuid
from quorate.quorum.protocol.errors import ErrorCode, KafkaError
from tests.unit.partition.harness import (
    Brokers,
    append,
    fetch,
    isr_of,
    leader_of,
    proposal_of,
    result,
    take_proposal,
    value,
)


def test_high_watermark_is_the_lowest_end_offset_of_the_isr() -> None:
    leader = leader_of((1, 2, 3))
    append(leader, 10)
    assert leader.high_watermark == 0
    fetch(leader, 2, 10)
    assert leader.high_watermark == 0
    fetch(leader, 3, 4)
    assert leader.high_watermark == 4
    fetch(leader, 3, 10)
    assert leader.high_watermark == 10


def test_alone_in_the_isr_the_leader_commits_at_once() -> None:
    leader = leader_of((1,))
    append(leader, 3)
    assert leader.high_watermark == 3


def test_a_caught_up_follower_is_proposed_with_broker_epochs() -> None:
    leader = leader_of((1, 2))
    append(leader, 5)
    fetch(leader, 2, 5)
    fetch(leader, 3, 4)
    assert proposal_of(leader) is None
    fetch(leader, 3, 5)
    change = take_proposal(leader)
    assert change.isr == ((1, 101), (2, 102), (3, 103))
    assert (change.leader_epoch, change.partition_epoch, change.cause) == (5, 5, "isr-expand")
    assert isr_of(leader) == ((1, 2), (1, 2, 3))


def test_fetch_of_an_earlier_incarnation_is_refused() -> None:
    """A replica that lost the tail of its log must not count with the offset of its earlier
    incarnation (KIP-903)."""
    leader = leader_of((1, 2))
    with pytest.raises(KafkaError) as refused:
        fetch(leader, 3, 0, broker_epoch=50)
    assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_fetch_of_a_broker_that_is_no_replica() -> None:
    leader = leader_of((1, 2))
    with pytest.raises(KafkaError) as refused:
        fetch(leader, 9, 0)
    assert refused.value.code is ErrorCode.UNKNOWN_LEADER_EPOCH


def test_a_lagging_follower_is_removed_only_when_the_controller_agrees() -> None:
    leader = leader_of((1, 2, 3), replica_lag_time_max_ms=1000)
    append(leader, 5)
    fetch(leader, 2, 5, now_ms=900)
    leader.check_followers(1000)
    assert proposal_of(leader) is None
    leader.check_followers(1001)
    change = take_proposal(leader)
    assert [each for each, _ in change.isr] == [1, 2]
    assert isr_of(leader) == ((1, 2, 3), (1, 2, 3))
    assert leader.high_watermark == 0, "the leaving replica may still be elected"
    leader.isr_answered(change, result(change), 1002)
    assert isr_of(leader) == ((1, 2), (1, 2))
    assert leader.high_watermark == 5


def test_only_one_change_at_a_time() -> None:
    """A leader with a pending expansion proposes neither a shrink nor the expansion again."""
    leader = leader_of((1, 2), replica_lag_time_max_ms=1000)
    fetch(leader, 3, 0)
    take_proposal(leader)
    pending = isr_of(leader)
    fetch(leader, 3, 0)
    append(leader, 1)
    leader.check_followers(5000)
    assert proposal_of(leader) is None
    assert isr_of(leader) == pending == ((1, 2), (1, 2, 3))


def test_a_pending_shrink_delays_an_expansion() -> None:
    leader = leader_of((1, 2), replica_lag_time_max_ms=1000)
    append(leader, 1)
    leader.check_followers(5000)
    shrink = take_proposal(leader)
    fetch(leader, 3, 1, now_ms=5000)
    assert proposal_of(leader) is None
    leader.isr_answered(shrink, result(shrink), 5000)
    fetch(leader, 3, 1, now_ms=5001)
    assert [each for each, _ in take_proposal(leader).isr] == [1, 3]


@pytest.mark.parametrize("code", [ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA])
def test_provably_not_applied_reverts(code: ErrorCode) -> None:
    leader = leader_of((1, 2))
    fetch(leader, 3, 0)
    change = take_proposal(leader)
    leader.isr_answered(change, result(change, code), 0)
    assert isr_of(leader) == ((1, 2), (1, 2))


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NEW_LEADER_ELECTED,
    ],
)
def test_waits_for_metadata(code: ErrorCode) -> None:
    leader = leader_of((1, 2))
    fetch(leader, 3, 0)
    change = take_proposal(leader)
    leader.isr_answered(change, result(change, code), 0)
    assert isr_of(leader) == ((1, 2), (1, 2, 3))
    assert proposal_of(leader) is None
    leader.make_leader(value(1, 5, (1, 2, 3), partition_epoch=6), now_ms=0)
    assert isr_of(leader) == ((1, 2, 3), (1, 2, 3))


def test_unknown_outcome_stays_pending_and_is_asked_again() -> None:
    """The controller may have applied the change, so the joining replica counts (KIP-497)."""
    leader = leader_of((1, 2))
    fetch(leader, 3, 0)
    change = take_proposal(leader)
    leader.isr_answered(change, result(change, ErrorCode.UNKNOWN_SERVER_ERROR), 0)
    assert take_proposal(leader) == change
    append(leader, 4)
    fetch(leader, 2, 4)
    assert leader.high_watermark == 0, "replica 3 counts"


def test_metadata_of_the_epoch_already_known_does_not_forget_a_proposal() -> None:
    """The leader receives the answer to one change, proposes the next, and then replays the record
    of the first. If it dropped the proposal, the high watermark could pass the joining replica."""
    leader = leader_of((1, 2))
    fetch(leader, 3, 0)
    first = take_proposal(leader)
    leader.isr_answered(first, result(first, isr=(1, 2)), 0)
    fetch(leader, 3, 0)
    second = take_proposal(leader)
    leader.make_leader(value(1, 5, (1, 2), partition_epoch=6), now_ms=0)
    assert second.partition_epoch == 6
    assert isr_of(leader) == ((1, 2), (1, 2, 3))


def test_what_followers_had_counts_only_if_nobody_else_led_since() -> None:
    """A leader replays several epochs in one step and leads again. Its followers may have followed
    another leader meanwhile, and truncated."""
    leader = leader_of((1, 2))
    append(leader, 5)
    fetch(leader, 2, 4)
    leader.make_leader(value(1, 6, (1, 2)), now_ms=0)
    append(leader, 5)
    assert leader.high_watermark == 4, "re-elected at once"
    fetch(leader, 2, 8)
    assert leader.high_watermark == 8
    append(leader, 5)
    leader.make_leader(value(1, 8, (1, 2)), now_ms=0)
    assert leader.leadership is not None
    assert leader.leadership.replicas[2].end_offset == -1


def test_answer_to_an_older_leadership_is_ignored() -> None:
    leader = leader_of((1, 2))
    fetch(leader, 3, 0)
    change = take_proposal(leader)
    leader.make_leader(value(1, 6, (1, 2), partition_epoch=7), now_ms=0)
    fetch(leader, 3, 0)
    leader.isr_answered(change, result(change), 0)
    assert isr_of(leader) == ((1, 2), (1, 2, 3))
    assert leader.partition_epoch == 7


def test_an_answer_without_the_leader_in_the_isr_is_ignored() -> None:
    """No rule of the controller gives it. Believed, it would stop the broker at its next proposal
    (found by the fuzzer of answers)."""
    leader = leader_of((1, 2))
    fetch(leader, 3, 0)
    change = take_proposal(leader)
    leader.isr_answered(change, result(change, isr=(2, 3)), 0)
    assert isr_of(leader) == ((1, 2), (1, 2, 3))


def test_equal_partition_epoch_in_the_answer_means_already_so() -> None:
    leader = leader_of((1, 2))
    fetch(leader, 3, 0)
    change = take_proposal(leader)
    leader.isr_answered(change, result(change, partition_epoch=5, isr=(1, 2, 3)), 0)
    assert isr_of(leader) == ((1, 2, 3), (1, 2, 3))


def test_r57_a_zombie_proposes_with_its_stale_epochs() -> None:
    """The epochs let the controller refuse the proposal. The former leader keeps the replica in its
    maximal ISR."""
    leader = leader_of((1, 2, 3), replica_lag_time_max_ms=1000)
    append(leader, 1)
    leader.check_followers(5000)
    change = take_proposal(leader)
    assert (change.leader_epoch, change.partition_epoch) == (5, 5)
    leader.isr_answered(change, result(change, ErrorCode.FENCED_LEADER_EPOCH), 5001)
    append(leader, 1)
    assert leader.high_watermark == 0


def test_kip966_no_progress_below_min_isr() -> None:
    leader = leader_of((1,), min_insync_replicas=2)
    append(leader, 3, acks=1)
    assert leader.high_watermark == 0
    with pytest.raises(KafkaError) as refused:
        append(leader, 1, acks=-1)
    assert refused.value.code is ErrorCode.NOT_ENOUGH_REPLICAS
    assert leader.log.end_offset == 3, "nothing was written"
    leader.make_leader(value(1, 5, (1, 2), partition_epoch=6), now_ms=0)
    fetch(leader, 2, 3)
    assert leader.high_watermark == 3


def test_min_isr_is_at_most_the_number_of_replicas() -> None:
    leader = leader_of((1, 2, 3), min_insync_replicas=7)
    append(leader, 1)
    fetch(leader, 2, 1)
    fetch(leader, 3, 1)
    assert leader.high_watermark == 1


def test_r56_below_min_isr_after_the_append() -> None:
    leader = leader_of((1, 2, 3), min_insync_replicas=2)
    append(leader, 1)
    fetch(leader, 2, 1)
    fetch(leader, 3, 1)
    assert leader.acks_all_error(1) is ErrorCode.NONE
    assert leader.acks_all_error(2) is None
    leader.make_leader(value(1, 5, (1,), partition_epoch=6), now_ms=0)
    assert leader.acks_all_error(1) is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    leader.make_follower(value(2, 6, (2,), partition_epoch=7))
    assert leader.acks_all_error(1) is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_joining_replica_holds_the_watermark_back() -> None:
    """Otherwise the follower of a busy leader, alone in the ISR, would never reach the high
    watermark."""
    leader = leader_of((1,), replica_lag_time_max_ms=1000)
    append(leader, 5, now_ms=0)
    fetch(leader, 2, 5, now_ms=10)
    assert isinstance(leader.leadership and leader.leadership.isr, PendingExpand)
    change = take_proposal(leader)
    leader.isr_answered(change, result(change, ErrorCode.INELIGIBLE_REPLICA), 10)
    append(leader, 5, now_ms=20)
    assert leader.high_watermark == 5
    append(leader, 5, now_ms=5000)
    assert leader.high_watermark == 15, "it has not been seen for longer than the lag time"


def test_a_follower_that_just_left_the_isr_holds_the_watermark_back_for_the_lag_time() -> None:
    """The other member is at the log end, so neither a fetch nor an append tells the leader that
    the time is over (seed 1672)."""
    leader = leader_of((1, 2, 3), replica_lag_time_max_ms=100)
    append(leader, 4)
    leader.make_leader(value(1, 5, (1, 2), 6), now_ms=10)
    fetch(leader, 2, 4, now_ms=10)
    leader.check_joining(99)
    assert leader.high_watermark == 0
    leader.check_joining(101)
    assert leader.high_watermark == 4


def test_a_follower_whose_log_directory_failed_does_not_hold_the_watermark_back() -> None:
    brokers, directory = Brokers(), Uuid(b"a log directory.")
    brokers.change(3, log_dirs=(Uuid(b"another one, too"),))
    leader = leader_of((1, 2, 3), brokers, replica_lag_time_max_ms=100)
    append(leader, 4)
    without = replace(value(1, 5, (1, 2), 6), directories=(directory,) * 3)
    leader.make_leader(without, now_ms=10)
    fetch(leader, 2, 4, now_ms=10)
    assert leader.high_watermark == 4
    fetch(leader, 3, 4, now_ms=10)
    assert proposal_of(leader) is None, "the controller would refuse it"


def test_states_say_what_counts() -> None:
    assert Committed((1, 2)).maximal == (1, 2)
    assert PendingExpand((1, 2), 3).maximal == (1, 2, 3)
    assert PendingShrink((1, 2, 3), (2,)).maximal == (1, 2, 3)
    assert PendingShrink((1, 2, 3), (2,)).proposed == (1, 3)
