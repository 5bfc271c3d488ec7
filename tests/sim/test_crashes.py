"""A process crashes at the call of its disk that a fault names."""

from __future__ import annotations

import asyncio

import pytest

from tests.sim.faults.crashes import CALLS, RESTART_S
from tests.sim.faults.faults import Fault
from tests.sim.run import PLACES, Simulation, play, simulation
from tests.sim.scripts.staging import healed, settled
from tests.sim.world.shape import Shape


async def a_broker_crashes(stage: Simulation, call: tuple[str, str], power_loss: int) -> None:
    await settled(stage)
    stage.producer("p1", PLACES, pace_s=0.05)
    machine = stage.cluster.brokers[0]
    fault = Fault(
        kind="crash_at_call",
        at_s=stage.loop.time(),
        lasts_s=5.0,
        names=(machine.name,),
        values={"call": CALLS.index(call), "later": 1, "power_loss": power_loss},
    )
    stage.faults.carry_out(fault)
    assert not stage.faults.effects.counts, "the call has not come yet"
    await stage.until(lambda: machine.process is None, "it has crashed", 4.5)
    assert stage.faults.effects.counts["crash_at_call"] == 1
    assert any(f"{machine.name} crashes before" in each for each in stage.cluster.trace)
    assert machine.power_losses == power_loss
    await asyncio.sleep(2 * RESTART_S)
    assert machine.process is not None, "it has started again"
    await healed(stage)


@pytest.mark.parametrize(
    ("call", "power_loss"),
    [(("rename", "checkpoint"), 0), pytest.param(("sync", ".log"), 1, marks=pytest.mark.long)],
)
def test_a_broker_crashes_at_a_call(call: tuple[str, str], power_loss: int) -> None:
    with simulation("crashes", Shape(disk_call_s=0.001)) as stage:
        play(stage, a_broker_crashes(stage, call, power_loss))


async def a_keeper_is_spared(stage: Simulation) -> None:
    """The broker lost nothing, but it keeps what another one has lost."""
    await settled(stage)
    keeper, other = stage.cluster.brokers[:2]
    stage.cluster.kill(other)
    stage.faults.limits.lost_data(other)
    assert keeper.name in stage.faults.limits.protected()
    before = keeper.process
    values = {"call": float(CALLS.index(("rename", "checkpoint"))), "later": 0, "power_loss": 0}
    fault = Fault(kind="crash_at_call", at_s=0.0, lasts_s=3.0, names=(keeper.name,), values=values)
    stage.faults.carry_out(fault)
    await asyncio.sleep(2)
    assert keeper.process is before
    await healed(stage)


@pytest.mark.long
def test_a_keeper_is_spared() -> None:
    with simulation("spared", Shape()) as stage:
        play(stage, a_keeper_is_spared(stage))
