"""Unclean elections: the check knows which losses they allow, and which log they choose."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from quorate.quorum.metadata.causes import Cause
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.metadata.records import NO_LEADER, PartitionChangeRecord
from tests.sim.ablations.table import ABLATIONS
from tests.sim.checks.committed_log import Violation
from tests.sim.checks.unclean_elections import Election
from tests.sim.run import Simulation, simulation
from tests.sim.scripts.staging import cut, healed, settled
from tests.sim.workloads import unclean
from tests.sim.workloads.unclean import NAME, Unclean
from tests.sim.world.cluster import NodeStopped
from tests.sim.world.shape import Shape

PLACE = (NAME, 0)


async def the_leader_dies_alone(stage: Simulation) -> Unclean:
    """Cut one follower off from the leader, then the other one, and then kill the leader. One of
    the two followers leads, and the last records are lost."""
    await settled(stage)
    work = await stage.begin(Unclean)
    assert isinstance(work, Unclean)
    await asyncio.sleep(1)
    leader = stage.leader_of(PLACE)
    partition = stage.cluster.newest_image().partition(work.topics[NAME].id, 0)
    assert leader is not None and partition is not None
    followers = [each for each in stage.cluster.brokers if each is not leader]
    followers.sort(key=lambda each: partition.replicas.index(each.id))
    for each in followers:  # the first in the order of the assignment has the shortest log
        cut(stage, [leader, each], [leader, each])
        await stage.until(lambda each=each: each.id not in stage.isr_of(PLACE), "left", 5)  # type: ignore[misc]
        await asyncio.sleep(0.5)
    assert stage.isr_of(PLACE) == (leader.id,)
    stage.cluster.kill(leader)
    await stage.until(lambda: stage.leader_of(PLACE) not in (leader, None), "elected", 8)
    await asyncio.sleep(1)
    await healed(stage)
    return work


async def losses_are_stated(stage: Simulation) -> None:
    work = await the_leader_dies_alone(stage)
    assert stage.coverage["workload unclean: records lost by an unclean election"] > 0
    assert stage.invariants.unclean.checks["logs of replicas that were not elected"] > 0
    assert stage.invariants.unclean.checks["sessions before an unclean election"] > 0
    key = (work.topics[NAME].id, 0)
    (election,) = stage.invariants.unclean.of(key)
    assert election.stated_end is not None
    work.acknowledged[election.stated_end - 1].append(unclean.Acknowledged(b"another", 0))
    with pytest.raises(Violation, match="no election states it"):
        await work.check()
    work.acknowledged[election.stated_end - 1].pop()
    stage.invariants.unclean._elections.clear()
    with pytest.raises(Violation, match="no election states it"):
        await work.check()


async def another_log_is_longer(stage: Simulation) -> None:
    with (
        ABLATIONS["longest-replica"].in_force(),
        pytest.raises(NodeStopped, match="was elected uncleanly with a log up to"),
    ):
        await asyncio.gather(the_leader_dies_alone(stage), stage.cluster.failed)


async def a_hint_does_not_wait(stage: Simulation) -> None:
    with (
        ABLATIONS["hints-hold"].in_force(),
        pytest.raises(NodeStopped, match=r"before the session of .* would have ended"),
    ):
        await asyncio.gather(the_leader_dies_alone(stage), stage.cluster.failed)


async def the_last_known_leader_is_compared(stage: Simulation) -> None:
    """One follower is cut off from the leader. The check gets a record by which it was elected as
    the last known leader."""
    await settled(stage)
    work = await stage.begin(Unclean)
    leader = stage.leader_of(PLACE)
    assert leader is not None
    behind = next(each for each in stage.cluster.brokers if each is not leader)
    cut(stage, [leader, behind], [leader, behind])
    await asyncio.sleep(2)
    image = stage.cluster.newest_image()
    topic_id = work.topics[NAME].id
    records = [
        PartitionChangeRecord(topic_id=topic_id, partition_id=0, leader=leader, cause=cause)
        for leader, cause in ((NO_LEADER, ""), (behind.id, Cause.LAST_KNOWN_LEADER))
    ]
    check = stage.invariants.unclean
    assert "was elected uncleanly with a log up to" in check.committed(records, image, image)
    allows_none = image._replace(configs=MetadataImage().configs)
    assert check.committed(records, allows_none, image) == ""


SCRIPTS = (
    losses_are_stated,
    another_log_is_longer,
    a_hint_does_not_wait,
    the_last_known_leader_is_compared,
)


@pytest.mark.parametrize("script", SCRIPTS)
def test_unclean_elections(
    script: Callable[[Simulation], Coroutine[Any, Any, None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unclean, "RULES", unclean.RULES[:1])
    with simulation(script.__name__, Shape()) as stage:
        stage.loop.run_until_complete(script(stage))


def test_what_an_election_allows() -> None:
    election = Election(leader=5, leader_epoch=3, stated_end=2, epochs={0: 1, 1: 1, 2: 1})
    assert election.may_lose(2, 2) and election.may_lose(3, 2)
    assert election.may_lose(1, 2), "the new leader's log had diverged"
    assert not election.may_lose(1, 1), "the new leader had it"
    assert not election.may_lose(3, 3), "it was written afterwards"
    short = Election(leader=5, leader_epoch=3, stated_end=9, epochs={0: 1})
    assert not short.may_lose(5, 2), "the cause states a longer log"
    unknown = Election(leader=5, leader_epoch=3, stated_end=None, epochs=None)
    assert unknown.may_lose(0, 2) and not unknown.may_lose(0, 3)
