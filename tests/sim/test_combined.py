"""Nodes that are controllers and brokers in one process."""

from __future__ import annotations

import pytest

from tests.sim.run import LIVENESS_S, PLACES, Simulation, play, simulation
from tests.sim.scripts.staging import settled, writes_some
from tests.sim.world.shape import Quorum, Shape


async def the_active_controller_loses_power(stage: Simulation) -> None:
    """Cut the power of the active controller, which leads partitions, too. The other nodes elect a
    controller, which elects leaders among them."""
    await settled(stage)
    producer = stage.producer("p1", PLACES)
    await writes_some(stage, producer, PLACES)
    old = stage.active()
    assert old.process is not None and old.process.broker is not None
    assert old in [stage.leader_of(place) for place in PLACES]
    stage.cluster.lose_power(old)
    await stage.until(
        lambda: all(stage.leader_of(place) not in (None, old) for place in PLACES),
        "others lead",
        LIVENESS_S,
    )
    await writes_some(stage, producer, PLACES)
    stage.cluster.start(old)
    await stage.reckoning()
    assert stage.active() is not old


async def each_node_stops_under_load(stage: Simulation) -> None:
    await settled(stage)
    producer = stage.producer("p1", PLACES)
    await writes_some(stage, producer, PLACES)
    for machine in stage.cluster.combined:
        await stage.stops_in_time(machine)
    await stage.reckoning()


@pytest.mark.parametrize("quorum", [Quorum.STATIC, Quorum.DYNAMIC])
def test_the_active_controller_loses_power(quorum: Quorum) -> None:
    with simulation("combined", Shape(brokers=0, combined=True, quorum=quorum)) as stage:
        play(stage, the_active_controller_loses_power(stage))


def test_each_node_stops_under_load() -> None:
    with simulation("combined", Shape(brokers=0, combined=True)) as stage:
        play(stage, each_node_stops_under_load(stage))
