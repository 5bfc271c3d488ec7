"""A violation that lasts only for a moment is found, too."""

from __future__ import annotations

import asyncio
import errno
from unittest import mock

import pytest

from tests.sim.ablations.table import ABLATIONS
from tests.sim.checks.invariants import Violation
from tests.sim.run import PLACES, SWEEP_S, Simulation, play, simulation
from tests.sim.scripts.staging import isolate, leader, settled, writes_some
from tests.sim.world.cluster import Machine, NodeStopped
from tests.sim.world.shape import Shape


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


async def a_watermark_goes_back_beside_a_disk_that_fails(stage: Simulation) -> None:
    """Lower a high watermark while the checks can read nothing on the disk of one controller."""
    await settled(stage)
    await writes_some(stage, stage.producer("p1", PLACES), PLACES)
    failing, votes = stage.cluster.controllers[0], stage.invariants.votes
    failing.may_fail = True
    read = votes.look

    def look(machine: Machine) -> str:
        if machine is failing:
            raise OSError(errno.EIO, "EIO")
        return read(machine)

    with mock.patch.object(votes, "look", look):
        await asyncio.sleep(1)
        assert failing.process is not None, "a check has stopped the node"
        process = leader(stage).process
        assert process is not None and process.broker is not None
        replicas = process.broker.replicas.registry
        hosted = max(replicas, key=lambda each: each.partition.high_watermark)
        hosted.partition.high_watermark -= 1
        await asyncio.sleep(2 * SWEEP_S)


def test_a_disk_that_fails_does_not_end_the_sweeps() -> None:
    with simulation(1, Shape()) as stage, pytest.raises(Violation, match="high watermark"):
        play(stage, a_watermark_goes_back_beside_a_disk_that_fails(stage))


async def one_of_two_disks_is_slow(stage: Simulation) -> None:
    """Slow down the disk of the active controller, and isolate the third controller. Nothing is
    lost."""
    await settled(stage)
    active = stage.active()
    isolate(stage, next(each for each in stage.cluster.controllers if each is not active))
    active.disk_delay_s = 1
    await asyncio.sleep(3)


def test_what_is_committed_is_on_the_disks_of_a_majority_and_not_in_their_memory() -> None:
    with simulation(1, Shape()) as stage:
        play(stage, one_of_two_disks_is_slow(stage))
    with (
        ABLATIONS["leader-flush"].in_force(),
        simulation(1, Shape()) as stage,
        pytest.raises(NodeStopped, match=r"called committed but durable only on \[\d\] of"),
    ):
        play(stage, one_of_two_disks_is_slow(stage))
