"""Scripts of quorums whose voters change, also those for the bugs that seeds have found."""

from __future__ import annotations

import asyncio

from tests.sim.run import Simulation
from tests.sim.scripts.staging import healed, isolate, settled
from tests.sim.world.cluster import Machine, Shape
from tests.sim.world.shape import Quorum

DYNAMIC = Shape(quorum=Quorum.DYNAMIC, spares=1)
JOINING = Shape(quorum=Quorum.DYNAMIC, spares=1, auto_join=True)


async def changed(
    stage: Simulation, *, add: Machine | None = None, remove: Machine | None = None
) -> None:
    """Ask for a change of the voters until it is committed."""
    admin = stage.quorum_admin

    async def ask() -> None:
        (leader,) = stage.cluster.active_controllers()
        if add is not None:
            await admin.add(leader.id, add)
        if remove is not None:
            await admin.remove(leader.id, remove.key)

    def voters() -> set[int]:
        (leader,) = stage.cluster.active_controllers()
        assert leader.process is not None
        return {each.voter_id for each in leader.process.core.voters}

    while (add is not None and add.id not in voters()) or (
        remove is not None and remove.id in voters()
    ):
        await admin.spawn(ask())
        await asyncio.sleep(0.2)
        await stage.until(lambda: len(stage.cluster.active_controllers()) == 1, "one leads", 10)


async def led_by(stage: Simulation, machine: Machine) -> None:
    """Stop one leader after the other until this machine leads."""
    cluster = stage.cluster
    while (leader := stage.active()) is not machine:
        cluster.stop(leader)
        await stage.until(lambda: leader.process is None, "stopped", 5)
        cluster.start(leader)
        await stage.until(lambda: len(cluster.active_controllers()) == 1, "one leads", 10)


async def voter_joins_by_itself(stage: Simulation) -> None:
    """Let a spare join by itself, and let a voter that lost its directory join as another voter."""
    await settled(stage)
    *_, wiped, spare = stage.cluster.controllers
    await stage.until(lambda: spare.key in stage.electorate.voting().voters, "it joined", 10)
    old = wiped.key
    stage.cluster.kill(wiped)
    stage.cluster.wipe(wiped)
    stage.electorate.wiped(old)
    stage.cluster.start(wiped)
    await stage.until(lambda: wiped.key in stage.electorate.voting().voters, "it is back", 10)
    await stage.quorum_admin.spawn(stage.quorum_admin.describe())
    await healed(stage)
    assert stage.voting.check(stage.electorate.voting(), stage.loop.time())
    assert {each.key for each in stage.voting.changes} == {spare.key, old, wiped.key}


async def voters_replaced(stage: Simulation) -> None:
    """Replace one voter after the other, also the leader, while a producer writes."""
    await settled(stage)
    stage.producer("p1", [("data", 0)])
    spare = stage.cluster.controllers[-1]
    await changed(stage, add=spare)
    await changed(stage, remove=stage.active())
    await healed(stage)


async def led_by_whom_its_log_has_not(stage: Simulation) -> None:
    """Let a controller follow a leader that is no voter in its own log.

    In seed 283, c1 replayed the removal of c2, and was cut off when c2 became a voter again. c1
    knew the address of c2, but had given up its link, and never fetched from c2 again."""
    await settled(stage)
    cluster = stage.cluster
    c1, c2, c3, spare = cluster.controllers
    await led_by(stage, c3)
    await changed(stage, add=spare)
    await changed(stage, remove=c2)
    await stage.caught_up()
    isolate(stage, c1)
    await changed(stage, add=c2)
    await led_by(stage, c2)
    cluster.network.heal()
    await stage.caught_up()
    await healed(stage)


async def removal_by_a_leader_cut_off(stage: Simulation) -> None:
    """Let a leader that is cut off from all other nodes remove a voter. It must not answer the
    administrator that the change is done."""
    await settled(stage)
    leader = stage.active()
    other = next(each for each in stage.cluster.controllers if each is not leader)
    isolate(stage, leader)
    work = stage.quorum_admin.spawn(stage.quorum_admin.remove(leader.id, other.key))
    await stage.until(
        lambda: any(each is not leader for each in stage.cluster.active_controllers()),
        "another leads",
        10,
    )
    await stage.until(work.done, "answered", 10)
    await healed(stage)
    await stage.caught_up()
