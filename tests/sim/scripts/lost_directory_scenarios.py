"""Scripts of controllers whose metadata directory is lost while meta.properties stays."""

from __future__ import annotations

import asyncio

from quorate.quorum.node.replica.metadata_mark import read_mark
from tests.sim.run import Simulation
from tests.sim.scripts.staging import healed, settled
from tests.sim.world.cluster import Machine

LONG_S = 15
"""A time of many election timeouts."""


def is_catching_up(machine: Machine) -> bool:
    assert machine.process is not None
    return machine.process.core.replica.raft.catching_up


async def committed_topic_stays(stage: Simulation) -> None:
    """Commit a topic without the stale controller. Then this controller and one that lost its
    directory are a majority, and the topic must not be lost."""
    await settled(stage)
    cluster = stage.cluster
    active = stage.active()
    lost, stale = (each for each in cluster.controllers if each is not active)
    cluster.kill(stale)
    await stage.admin.spawn(stage.admin.create_surely("more", 1))
    cluster.kill(lost)
    cluster.kill(active)
    cluster.lose_metadata(lost)
    cluster.start(lost)
    cluster.start(stale)
    await asyncio.sleep(LONG_S)
    for machine in cluster.brokers:
        cluster.kill(machine)
    cluster.start(active)
    await stage.until(lambda: len(cluster.active_controllers()) == 1, "one leads", 20)
    image = stage.active().process
    assert image is not None
    assert "more" in image.core.image.topic_ids, "the committed topic vanished"
    await stage.until(lambda: not is_catching_up(lost), "it has caught up", 20)
    await healed(stage)


async def one_is_restored(stage: Simulation) -> None:
    """Let a controller that lost its directory catch up without an operator, and then vote
    again."""
    await settled(stage)
    cluster = stage.cluster
    active = stage.active()
    lost, other = (each for each in cluster.controllers if each is not active)
    mark = read_mark(lost.disk, lost.config.metadata_log_dir)
    assert mark is not None and mark.has_records and mark.epoch > 0
    cluster.kill(lost)
    cluster.lose_metadata(lost)
    cluster.start(lost)
    assert is_catching_up(lost)
    await stage.until(lambda: not is_catching_up(lost), "it has caught up", 10)
    cluster.kill(other)
    cluster.kill(active)
    cluster.start(other)
    await stage.until(lambda: len(cluster.active_controllers()) == 1, "they elect one", 10)
    await healed(stage)


async def lost_again_while_it_catches_up(stage: Simulation) -> None:
    """Crash a controller while it catches up. It must not vote after the restart either, although
    its log is no longer empty."""
    await settled(stage)
    cluster = stage.cluster
    active = stage.active()
    lost, other = (each for each in cluster.controllers if each is not active)
    cluster.kill(lost)
    cluster.lose_metadata(lost)
    cluster.kill(other)
    cluster.start(lost)
    process = lost.process
    assert process is not None
    await stage.until(
        lambda: process.core.log.end_offset > 0 or not is_catching_up(lost), "some", 9
    )
    restricted = is_catching_up(lost)
    cluster.lose_power(lost)
    cluster.start(lost)
    assert is_catching_up(lost) == restricted
    await healed(stage)
    assert not is_catching_up(lost)
