"""The rules by which a follower joins and leaves the ISR: alone, and as a leader applies them."""

from __future__ import annotations

from typing import Any

import pytest

from quorate.broker.partition.isr_membership import has_caught_up, is_isr_eligible, lagging
from quorate.broker.partition.replica_state import UNKNOWN_BROKER_EPOCH, ReplicaState
from quorate.quorum.directory_ids import LOST, MIGRATING
from quorate.quorum.ids import Uuid
from tests.unit.partition.harness import (
    Brokers,
    append,
    fetch,
    leader_of,
    partition,
    proposal_of,
    value,
)

ONE, OTHER = Uuid(b"log directory 01"), Uuid(b"log directory 02")


def follower(
    broker_id: int, offset: int, *, now_ms: int = 0, broker_epoch: int = 0
) -> ReplicaState:
    """A follower that fetched at `offset` while the leader's log ended at 10."""
    replica = ReplicaState(broker_id)
    replica.fetched(offset, 0, broker_epoch, leader_end_offset=10, now_ms=now_ms)
    return replica


@pytest.mark.parametrize(
    ("high_watermark", "epoch_start_offset", "caught_up"),
    [(4, 4, True), (5, 4, False), (4, 5, False), (0, 3, True), (3, 0, True)],
)
def test_a_follower_has_caught_up_at_the_watermark_and_the_epoch_start(
    high_watermark: int, epoch_start_offset: int, caught_up: bool
) -> None:
    assert has_caught_up(follower(2, 4), high_watermark, epoch_start_offset) == caught_up


def test_a_follower_that_has_not_fetched_has_not_caught_up() -> None:
    assert not has_caught_up(ReplicaState(2), 0, 0)


@pytest.mark.parametrize(
    ("changes", "broker_epoch", "eligible"),
    [
        ({}, 103, True),
        ({}, UNKNOWN_BROKER_EPOCH, True),
        ({}, 102, False),  # its fetch came from another incarnation
        ({"fenced": True}, 103, False),
        ({"in_controlled_shutdown": True}, 103, False),
    ],
)
def test_which_broker_is_eligible(
    changes: dict[str, Any], broker_epoch: int, eligible: bool
) -> None:
    brokers = Brokers()
    brokers.change(3, **changes)
    sent = follower(3, 0, broker_epoch=broker_epoch)
    assert is_isr_eligible(sent, brokers(3), ONE) == eligible


@pytest.mark.parametrize(
    ("directory", "eligible"), [(ONE, True), (OTHER, False), (MIGRATING, True), (LOST, False)]
)
def test_a_replica_in_a_directory_that_is_offline_is_not_eligible(
    directory: Uuid, eligible: bool
) -> None:
    brokers = Brokers()
    brokers.change(3, log_dirs=(ONE,))
    sent = follower(3, 0, broker_epoch=103)
    assert is_isr_eligible(sent, brokers(3), directory) == eligible


def test_a_broker_that_is_not_registered_is_not_eligible() -> None:
    assert not is_isr_eligible(follower(3, 0, broker_epoch=UNKNOWN_BROKER_EPOCH), None, ONE)


def test_which_members_lag() -> None:
    replicas = {
        2: follower(2, 10, now_ms=0),  # at the log end
        3: follower(3, 9, now_ms=900),  # never at the log end
        4: follower(4, 9, now_ms=0),
        5: follower(5, 9, now_ms=0),
    }
    replicas[4].seen_caught_up(500)
    replicas[5].seen_caught_up(499)
    assert lagging((5, 4, 3, 2), replicas, 10, now_ms=1500, lag_time_max_ms=1000) == (5, 3)
    assert lagging((2,), replicas, 11, now_ms=1000, lag_time_max_ms=1000) == ()
    assert lagging((2,), replicas, 11, now_ms=1001, lag_time_max_ms=1000) == (2,)
    assert lagging((6,), replicas, 10, now_ms=0, lag_time_max_ms=1000) == (6,), "no replica"


def test_a_follower_below_the_epoch_start_may_not_join() -> None:
    """It could be elected without the records that were committed before this epoch
    (KAFKA-7128)."""
    leader = partition(1)
    leader.make_leader(value(1, 5, (1,)), now_ms=0)
    append(leader, 5)
    leader.make_follower(value(2, 6, (1, 2)))
    leader.make_leader(value(1, 7, (1, 2)), now_ms=0)
    leader.high_watermark = 2  # as a new leader's may lag
    fetch(leader, 3, 4)
    assert proposal_of(leader) is None
    fetch(leader, 3, 5)
    assert proposal_of(leader) is not None


@pytest.mark.parametrize(
    "ineligible",
    [{"fenced": True}, {"in_controlled_shutdown": True}, {"epoch": 99}],
    ids=["fenced", "shutting-down", "another-incarnation"],
)
def test_an_ineligible_broker_is_not_proposed(ineligible: dict[str, int]) -> None:
    brokers = Brokers()
    brokers.change(3, **ineligible)
    leader = leader_of((1, 2), brokers)
    fetch(leader, 3, 0)
    assert proposal_of(leader) is None


def test_a_follower_that_keeps_pace_behind_the_end_stays() -> None:
    """The lag is measured in time, not in records (KAFKA-1546)."""
    leader = leader_of((1, 2), replica_lag_time_max_ms=1000)
    offset = 0
    for now_ms in range(0, 5000, 500):
        append(leader, 5, now_ms=now_ms)
        fetch(leader, 2, offset, now_ms=now_ms)
        offset += 5
        leader.check_followers(now_ms)
    assert proposal_of(leader) is None
