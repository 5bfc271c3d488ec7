"""The fault model: brokers lose data while other faults last, and a fault without an effect does
not count."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.sim.faults.faults import Fault
from tests.sim.run import PLACES, Simulation, play, simulation
from tests.sim.scripts.staging import healed, settled, writes_some
from tests.sim.world.sessions import RECENT_MS
from tests.sim.world.shape import Quorum, Shape


def fault(stage: Simulation, kind: str, *names: str, others: tuple[str, ...] = ()) -> Fault:
    return Fault(kind=kind, at_s=stage.loop.time(), lasts_s=1.0, names=names, others=others)


async def one_of_three_is_dead(stage: Simulation) -> None:
    """Another broker may lose its data then. The third one is protected until that broker is
    back."""
    await settled(stage)
    await writes_some(stage, stage.producer("p1", PLACES), PLACES)
    dead, losing, keeper = stage.cluster.brokers
    faults, limits = stage.faults, stage.faults.limits
    faults.carry_out(fault(stage, "kill", dead.name))
    assert not limits.may_lose_unsynced(losing), "the dead one is in the ISR still"
    isrs = [stage.isr_of(place) for place in PLACES]
    assert all(dead.id in isr for isr in isrs)
    await stage.until(lambda: dead.id not in stage.isr_of(PLACES[0]), "out of the ISR", 5)
    await stage.until(lambda: limits.may_lose_unsynced(losing), "settled", 5)
    faults.carry_out(fault(stage, "lose_power", losing.name))
    assert losing.process is None and limits.together == 1
    for kind in ("kill", "lose_power", "wipe", "stop", "sync_fails", "pause"):
        faults.carry_out(fault(stage, kind, keeper.name))
        assert keeper.process is not None and not keeper.stopping and not keeper.may_fail, kind
    faults.carry_out(fault(stage, "isolate", keeper.name, others=tuple(stage.cluster.machines)))
    active = stage.active().name
    assert not stage.cluster.network.path(keeper.name, active).blocked
    faults.carry_out(fault(stage, "kill", active))
    assert stage.cluster.machines[active].process is None, "others are not protected"
    await asyncio.sleep(1.5)
    await stage.until(lambda: not limits.protected(), "registered again", 10)
    await healed(stage)


async def alone(stage: Simulation) -> None:
    """No other member of the ISR keeps the records that this one would lose."""
    await settled(stage)
    losing = stage.cluster.brokers[2]
    for machine in stage.cluster.brokers:
        if machine is not losing:
            stage.cluster.kill(machine)
    await stage.until(lambda: stage.isr_of(PLACES[0]) == (losing.id,), "alone", 5)
    assert not stage.faults.limits.may_lose_unsynced(losing)
    stage.faults.carry_out(fault(stage, "wipe", losing.name))
    assert losing.process is not None and not stage.faults.effects.counts
    await healed(stage)


async def a_keeper_is_not_heard(stage: Simulation) -> None:
    """A new active controller gives each broker a whole session, also one that cannot reach it.
    Such a broker is no keeper (seed 5606)."""
    await settled(stage)
    losing, *others = stage.cluster.brokers
    limits = stage.faults.limits
    await stage.until(lambda: limits.may_lose_unsynced(losing), "settled", 5)
    for machine in others:
        assert machine.process is not None and machine.process.broker is not None
        lifecycle = machine.process.broker.lifecycle
        assert lifecycle is not None
        lifecycle.heard_ms -= RECENT_MS + 1
    assert not limits.may_lose_unsynced(losing)
    await stage.until(lambda: limits.may_lose_unsynced(losing), "heard again", 5)
    await healed(stage)


async def keepers_are_hit_first(stage: Simulation) -> None:
    """The disk of a registered broker may fail, which frees the keepers. After they are killed, the
    broker must not lose the records that only it has."""
    await settled(stage)
    losing, *others = stage.cluster.brokers
    faults, limits = stage.faults, stage.faults.limits
    await stage.until(lambda: limits.may_lose_unsynced(losing), "settled", 5)
    faults.carry_out(fault(stage, "sync_fails", losing.name))
    assert losing.may_fail
    faults.carry_out(fault(stage, "kill", *(each.name for each in (losing, *others))))
    assert not any(each.process for each in stage.cluster.brokers)
    assert not limits.may_lose_unsynced(losing)
    await asyncio.sleep(1.5)
    await healed(stage)


async def power_goes_after_a_full_disk(stage: Simulation) -> None:
    """From the power cut on, the keepers are protected until the broker has registered again."""
    await settled(stage)
    losing = stage.cluster.brokers[0]
    faults, limits = stage.faults, stage.faults.limits
    await stage.until(lambda: limits.may_lose_unsynced(losing), "settled", 5)
    faults.carry_out(replace(fault(stage, "full", losing.name), lasts_s=0.02))
    await asyncio.sleep(0.0201)
    assert losing.power_losses == 1
    assert not stage.cluster.is_registered(losing) and limits.protected()
    await healed(stage)


async def one_outside_of_an_isr(stage: Simulation) -> None:
    """A Fetch that the broker sent before may still bring it into the ISR, so the leader is a
    keeper."""
    await settled(stage)
    losing = next(each for each in stage.cluster.brokers if each is not stage.leader_of(PLACES[0]))
    stage.cluster.kill(losing)
    await stage.until(lambda: losing.id not in stage.isr_of(PLACES[0]), "out of the ISR", 5)
    limits = stage.faults.limits
    await stage.until(lambda: limits.may_lose_unsynced(losing), "settled", 5)
    limits.lost_data(losing)
    leader = stage.leader_of(PLACES[0])
    assert leader is not None and leader.name in limits.protected()
    stage.cluster.start(losing)
    await healed(stage)


async def all_are_fenced(stage: Simulation) -> None:
    """The ISR is empty. One of its last members leads next, so each of them keeps its data."""
    await settled(stage)
    for machine in stage.cluster.brokers:
        stage.cluster.kill(machine)
    await stage.until(lambda: stage.isr_of(PLACES[0]) == (), "all are fenced", 5)
    partition = stage.cluster.newest_image().topic(PLACES[0][0])
    assert partition is not None
    last = partition.partitions[0].elr or partition.partitions[0].last_known_elr
    assert last
    for machine in stage.cluster.brokers:
        if machine.id in last:
            assert not stage.faults.limits.may_lose_unsynced(machine)
    await healed(stage)


async def without_effect(stage: Simulation) -> None:
    """The faults hit nodes that do not run, and paths on which nothing is sent."""
    await settled(stage)
    victim = stage.cluster.brokers[0]
    stage.cluster.kill(victim)
    for kind in ("kill", "stop", "pause", "step_clock", "lose_power", "slow_disk", "sync_fails"):
        values = {"offset_ms": 1.0, "delay_s": 0.1}
        made = Fault(kind=kind, at_s=0, lasts_s=0.1, names=(victim.name,), values=values)
        stage.faults.carry_out(made)
    stage.faults.carry_out(fault(stage, "break_links", victim.name, "nobody"))
    stage.faults.carry_out(fault(stage, "isolate", "nobody", others=(victim.name,)))
    await asyncio.sleep(1.5)
    assert not stage.faults.effects.counts
    assert len(stage.faults.done) == 9
    stage.faults.carry_out(fault(stage, "pause", stage.cluster.brokers[1].name))
    await asyncio.sleep(1.5)
    assert stage.faults.effects.counts == {"pause": 1}
    await healed(stage)


async def one_controller_is_silent(stage: Simulation) -> None:
    """The silent controller has to catch up before it votes. Without another one, no leader could
    be elected."""
    await settled(stage)
    electorate, cluster = stage.electorate, stage.cluster
    *voters, spare = cluster.controllers
    silent, other = (each for each in voters if each is not stage.active())
    await stage.until(lambda: electorate.others_have(silent), "all have the same", 5)
    assert electorate.may_wipe(other) and electorate.may_remove(other.key)
    cluster.kill(silent)
    cluster.lose_metadata(silent)
    cluster.kill(other)
    cluster.start(silent)
    await asyncio.sleep(0.01)
    assert electorate.is_silent(silent) and not electorate.may_wipe(other)
    assert not electorate.may_remove(other.key) and not electorate.others_have(other)
    assert electorate.may_add(spare)
    cluster.kill(spare)
    cluster.lose_metadata(spare)
    assert electorate.is_silent(spare) and not electorate.may_add(spare), "two of four are silent"
    cluster.kill(silent)
    assert electorate.is_silent(silent), "it has not caught up"
    healthy = electorate.majority(cluster.random("majority"))
    assert sum(each in voters and each is not silent for each in healthy) == 2
    for stopped in (other, silent, spare):
        cluster.start(stopped)
    await stage.until(lambda: not electorate.is_silent(silent), "it has caught up", 5)
    assert electorate.may_wipe(other)
    await healed(stage)


def test_a_silent_controller() -> None:
    with simulation("silent", Shape(brokers=3, quorum=Quorum.DYNAMIC, spares=1)) as stage:
        play(stage, one_controller_is_silent(stage))


SCRIPTS = (
    one_of_three_is_dead,
    alone,
    a_keeper_is_not_heard,
    keepers_are_hit_first,
    power_goes_after_a_full_disk,
    all_are_fenced,
    one_outside_of_an_isr,
    without_effect,
)


@pytest.mark.parametrize("script", SCRIPTS)
def test_limits(script: Callable[[Simulation], object]) -> None:
    with simulation(script.__name__, Shape()) as stage:
        play(stage, script(stage))  # type: ignore[arg-type]
