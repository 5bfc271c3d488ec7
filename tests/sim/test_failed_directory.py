"""One log directory of a broker fails, and the checks of that find what breaks."""

from __future__ import annotations

import random

import pytest

from tests.sim.checks.committed_log import Violation
from tests.sim.checks.watermarks import hosted_by
from tests.sim.faults.failed_directory import Course, FailedDirectory, chosen
from tests.sim.run import PLACES, Simulation, play, simulation
from tests.sim.scripts.staging import healed, settled
from tests.sim.workloads.moves import Moves
from tests.sim.world.shape import Shape


async def a_directory_fails(stage: Simulation, course: Course) -> None:
    await settled(stage)
    stage.producer("p1", PLACES, pace_s=0.05)
    draw = random.Random(1)
    machine = chosen(stage, draw)
    assert machine is not None
    failed = FailedDirectory(stage, draw, machine)
    await failed.takes(course)
    hurt = machine.disk.hurt
    await healed(stage)
    assert not machine.disk.failed and machine.disk.hurt == hurt, "the disk is mended"
    if course is Course.STARTS_AGAIN:
        failed._held = list(hosted_by(machine))
        with pytest.raises(Violation, match="made a second log"):
            failed.require_one_log()
        with pytest.raises(Violation, match="a broker reports its failed directory"):
            await failed.takes_no_part()
        failed.is_noticed = lambda: True  # type: ignore[method-assign]
        failed.taking_part = lambda: ["data-0"]  # type: ignore[method-assign]
        with pytest.raises(Violation, match="no replica in a failed directory leads"):
            await failed.takes_no_part()


@pytest.mark.parametrize(
    "course",
    [Course.STARTS_AGAIN, *(pytest.param(each, marks=pytest.mark.long) for each in Course)],
)
def test_a_directory_fails(course: Course) -> None:
    with simulation("a directory fails", Shape(overrides=Moves.keys)) as stage:
        play(stage, a_directory_fails(stage, course))
