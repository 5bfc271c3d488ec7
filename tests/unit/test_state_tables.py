"""No state machine leaves its table of transitions: the core refuses every other transition.

`make docs` draws these tables (tests/docs/drawings.py). The groups' table has the same test in
tests/unit/groups/test_rebalance.py, and the roles of Raft in tests/unit/raft.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from quorate.broker.controller import lifecycle
from quorate.broker.partition import isr_states as isr
from quorate.broker.partition.isr_states import Committed, IsrState, PendingExpand, PendingShrink
from quorate.quorum.controller.brokers import broker_changes
from quorate.quorum.controller.brokers.broker_states import (
    TRANSITIONS,
    BrokerState,
    check_transition,
)
from quorate.quorum.controller.partitions import partition_states
from quorate.quorum.controller.partitions.partition_states import LeaderEpoch, PartitionState
from quorate.quorum.metadata.causes import Cause
from quorate.quorum.metadata.image import Broker
from quorate.quorum.metadata.records import NO_LEADER, RECOVERED, RECOVERING
from quorate.quorum.raft import states
from quorate.quorum.raft.effects import Role
from quorate.quorum.raft.errors import InvariantViolation
from tests.unit.broker import test_lifecycle
from tests.unit.controller.harness import Driver, uuid
from tests.unit.partition.harness import partition, value
from tests.unit.raft.harness import RaftCluster

FENCED = Broker(id=1, epoch=7, incarnation_id=uuid(1), endpoints=(), fenced=True)
BROKERS = {
    BrokerState.FENCED: FENCED,
    BrokerState.UNFENCED: replace(FENCED, fenced=False),
    BrokerState.CONTROLLED_SHUTDOWN: replace(FENCED, fenced=False, in_controlled_shutdown=True),
}
LEADERS = {
    PartitionState.LED: (1, RECOVERED),
    PartitionState.RECOVERING: (1, RECOVERING),
    PartitionState.LEADERLESS: (NO_LEADER, RECOVERED),
}
"""The leader and the leader recovery state of a partition in each state."""
ISRS: tuple[IsrState, ...] = (Committed((1,)), PendingExpand((1,), 2), PendingShrink((1, 2), (2,)))


@pytest.mark.parametrize(("current", "following"), [*itertools.product(BROKERS, BrokerState)])
def test_a_broker_changes_its_state_by_the_table(
    current: BrokerState, following: BrokerState
) -> None:
    if (current, following) in TRANSITIONS:
        check_transition(BROKERS[current], following)
    else:
        with pytest.raises(AssertionError, match="broker 1 must not change from"):
            check_transition(BROKERS[current], following)


def test_the_controller_writes_no_record_for_a_transition_outside_of_the_table() -> None:
    driver = Driver()
    driver.start(1)
    context = driver.controller._context
    broker = driver.broker(1)
    with pytest.raises(AssertionError, match="from unfenced to unfenced"):
        next(broker_changes.unfence(context, broker))
    with pytest.raises(AssertionError, match="from fenced to fenced"):
        next(broker_changes.fence(context, replace(broker, fenced=True), Cause.SESSION_EXPIRED))
    with pytest.raises(AssertionError, match="from fenced to controlled shutdown"):
        next(broker_changes.enter_controlled_shutdown(context, replace(broker, fenced=True)))


@pytest.mark.parametrize(("current", "following"), [*itertools.product(ISRS, ISRS)])
def test_a_leader_changes_its_isr_by_the_table(current: IsrState, following: IsrState) -> None:
    leader = partition(1)
    leader.make_leader(value(1, 0, (1, 2, 3)), 0)
    assert leader.leadership is not None
    leader.leadership.isr = current
    if (type(current), type(following)) in isr.TRANSITIONS:
        leader.leadership._enter(following)
        assert leader.leadership.isr == following
    else:
        with pytest.raises(AssertionError, match="an ISR must not change from"):
            leader.leadership._enter(following)
        assert leader.leadership.isr == current


@pytest.mark.parametrize(("before", "after"), [*itertools.product(PartitionState, PartitionState)])
@pytest.mark.parametrize("next_epoch", [False, True])
def test_a_partition_changes_by_the_table(
    before: PartitionState, after: PartitionState, next_epoch: bool
) -> None:
    epoch = partition_states.TRANSITIONS[before, after].epoch
    old, new = LEADERS[before], LEADERS[after]
    if epoch is (LeaderEpoch.SAME if next_epoch else LeaderEpoch.NEXT):
        with pytest.raises(AssertionError, match="a partition must not change from"):
            partition_states.check_transition(old, new, next_epoch=next_epoch)
    else:
        partition_states.check_transition(old, new, next_epoch=next_epoch)


def test_the_leader_of_a_partition_changes_only_with_the_leader_epoch() -> None:
    for before, after in itertools.permutations(PartitionState, 2):
        if PartitionState.LEADERLESS in (before, after):
            assert partition_states.TRANSITIONS[before, after].epoch is LeaderEpoch.NEXT


@pytest.mark.parametrize(("current", "following"), [*itertools.permutations(lifecycle.State, 2)])
def test_a_broker_runs_by_the_table(current: lifecycle.State, following: lifecycle.State) -> None:
    broker = test_lifecycle.Broker().lifecycle
    broker.state = current
    if (current, following) in lifecycle.TRANSITIONS:
        broker._enter(following)
        assert broker.state is following
    else:
        with pytest.raises(AssertionError, match="a broker must not change from"):
            broker._enter(following)
        assert broker.state is current


def test_a_node_changes_its_role_by_the_table() -> None:
    cluster = RaftCluster()
    core = cluster.core(1)._core
    assert (Role.UNATTACHED, Role.LEADER) not in states.TRANSITIONS
    leader = states.Leader(
        epoch_start_offset=0, voters={}, check_quorum_ms=None, begin_epoch_ms=None
    )
    with pytest.raises(InvariantViolation, match="no transition from unattached"):
        core.become(leader, core.epoch, voted=core.me)
    assert core.state.role is Role.UNATTACHED
