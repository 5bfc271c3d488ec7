"""Histories of users with permissions and credentials, while active controllers die."""

from __future__ import annotations

import asyncio

from tests.sim.run import Simulation, play, simulation
from tests.sim.scripts.staging import healed, settled
from tests.sim.workloads.credentials import Credentials
from tests.sim.workloads.workload import Workload
from tests.sim.world.shape import Shape

RUN_S = 4
KILLS = 2
PACE_S = 0.05


def shape_for(work: type[Workload], *, streams: bool = False) -> Shape:
    """Return a small cluster with the listeners and keys of the workload."""
    return Shape(overrides=work.keys, sasl=work.logs_in, streams=streams)


async def with_dying_controllers(stage: Simulation, work: type[Workload]) -> Workload:
    """Run the workload, kill two active controllers, and check all promises."""
    await settled(stage)
    found = await stage.begin(work, pace_s=PACE_S)
    for _ in range(KILLS):
        await asyncio.sleep(RUN_S / KILLS)
        killed = stage.active()
        stage.cluster.kill(killed)
        await asyncio.sleep(1)
        stage.cluster.start(killed)
        await stage.until(stage.all_serve, "another one leads", 10)
    await healed(stage)
    return found


def users_log_in_while_their_credentials_are_removed() -> None:
    """Let an administrator remove users while each broker has open sessions of them."""
    with simulation("credentials", shape_for(Credentials)) as stage:
        play(stage, with_dying_controllers(stage, Credentials))
