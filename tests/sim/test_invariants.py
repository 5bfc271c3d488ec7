"""What is wrong for a moment only is found, too."""

from __future__ import annotations

import asyncio

import pytest

from tests.sim.invariants import Violation
from tests.sim.run import PLACES, SWEEP_S, Simulation, play, simulation
from tests.sim.shape import Shape
from tests.sim.staging import leader, settled, writes_some


async def watermark_goes_back_between_two_sweeps(stage: Simulation) -> None:
    await settled(stage)
    await writes_some(stage, stage.producer("p1", PLACES), PLACES)
    process = leader(stage).process
    assert process is not None and process.broker is not None
    hosted = max(process.broker.replicas.registry, key=lambda each: each.partition.high_watermark)
    right = hosted.partition.high_watermark
    assert right > 0
    for value in (right - 1, right):
        hosted.partition.high_watermark = value
        hosted.changed()
        await asyncio.sleep(SWEEP_S / 100)


def test_what_is_wrong_between_two_sweeps_is_found() -> None:
    with simulation(1, Shape()) as stage, pytest.raises(Violation, match="high watermark"):
        play(stage, watermark_goes_back_between_two_sweeps(stage))
