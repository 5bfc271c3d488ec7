"""The workloads of moved replicas and of min.insync.replicas find the faults for which they
exist."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from tests.sim.checks.invariants import Violation
from tests.sim.faults.damage import has_offline_directory
from tests.sim.faults.faults import Fault
from tests.sim.run import Simulation, play, simulation
from tests.sim.scripts.log_directory_scenarios import fail_directory
from tests.sim.scripts.staging import healed, is_unfenced, settled
from tests.sim.workloads import min_isr
from tests.sim.workloads.min_isr import MinIsr
from tests.sim.workloads.moves import Moves
from tests.sim.world.shape import Shape


async def replicas_move(stage: Simulation) -> None:
    await settled(stage)
    work = await stage.begin(Moves, pace_s=0.05)
    assert isinstance(work, Moves)
    await asyncio.sleep(2)
    stage.cluster.kill(stage.cluster.brokers[0])
    await asyncio.sleep(1)
    await healed(stage)
    for kind in ("writes", "moves that were accepted", "moves that ended"):
        assert stage.coverage[f"workload moves: {kind}"] > 3, kind
    work.acknowledged[0, 1 << 20] = b"never there"
    with pytest.raises(Violation, match="is not at"):
        await work.check()
    work._under_way = lambda: 1  # type: ignore[method-assign]
    with pytest.raises(Violation, match="all moves have ended"):
        await work.check()


async def one_directory_is_offline(stage: Simulation) -> None:
    """A broker with a failed directory continues, and needs a restart when its disk is mended."""
    await settled(stage)
    await stage.begin(Moves)
    broker = stage.cluster.brokers[0]
    process = broker.process
    assert process is not None and not has_offline_directory(process)
    fault = Fault(kind="io_errors", at_s=stage.loop.time(), names=(broker.name,))
    mended = stage.faults.damage.failing(broker, fault)
    fail_directory(broker, f"/{broker.name}-two")
    await stage.until(lambda: has_offline_directory(process), "offline", 5)
    assert broker.process is process
    mended()
    assert stage.cluster.machines[broker.name].process is None
    await healed(stage)


async def the_value_changes_without_an_isr(stage: Simulation) -> None:
    """All brokers die. One that may not lead is back when min.insync.replicas changes. After this
    no replica may be elected."""
    await settled(stage)
    work = await stage.begin(MinIsr)
    place = (min_isr.NAME, 0)
    await asyncio.sleep(0.5)
    for each in stage.cluster.brokers:
        stage.cluster.kill(each)
    await stage.until(lambda: stage.isr_of(place) == (), "no ISR", 8)
    partition = stage.cluster.newest_image().partition(work.topics[min_isr.NAME].id, 0)
    assert partition is not None
    eligible = (*partition.elr, *partition.last_known_elr)
    other = next(each for each in stage.cluster.brokers if each.id not in eligible)
    stage.cluster.start(other)
    await stage.until(lambda: is_unfenced(stage, other), "unfenced", 8)
    configured = stage.admin.configure_surely(min_isr.NAME, min_isr.KEY, 1)
    await stage.admin.spawn(configured)
    assert isinstance(work, MinIsr) and work._nobody_may_lead()
    await healed(stage)
    assert stage.coverage["workload min isr: unclean elections on request"] > 0
    assert stage.leader_of(place) is not None


@pytest.mark.parametrize("script", [replicas_move, one_directory_is_offline])
def test_moves(script: Callable[[Simulation], Coroutine[Any, Any, None]]) -> None:
    with simulation(script.__name__, Shape(overrides=Moves.keys)) as stage:
        play(stage, script(stage))


def test_a_min_isr_that_changes_without_an_isr() -> None:
    with simulation("min isr", Shape()) as stage:
        play(stage, the_value_changes_without_an_isr(stage))
