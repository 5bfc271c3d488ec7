"""A controller that has failed decides nothing more, although its process has not ended yet."""

from __future__ import annotations

import errno

from quorate.quorum.node.controller.controller_batch import Refusal
from tests.sim.run import Simulation, play, simulation
from tests.sim.world.shape import Shape


async def the_disk_fails_during_an_append(stage: Simulation) -> None:
    """Fail the disk during an append. The image is then ahead of the log, so the next decision
    would rest on records that do not exist."""
    await stage.ready({})
    active = stage.active()
    assert active.process is not None and active.process.controller is not None
    shell, core = active.process.controller.shell, active.process.core
    active.may_fail = True
    answers: list[object] = []
    core.fail(OSError(errno.EROFS, "EROFS"))
    assert not shell.active
    shell.submit(object(), answers.append)
    assert answers == [Refusal.NOT_CONTROLLER]


def test_a_failed_controller_decides_nothing() -> None:
    with simulation("failed controller", Shape(brokers=0)) as stage:
        play(stage, the_disk_fails_during_an_append(stage))
