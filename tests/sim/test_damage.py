"""Damage to what was synced, on a whole cluster: what anybody was told is nowhere lost."""

from __future__ import annotations

import asyncio

from quorate.quorum.log.batches.batch import PREFIX_BYTES, batches
from quorate.quorum.log.checking.check_result import Kind
from quorate.quorum.log.files import checkpoints
from quorate.quorum.log.files.names import PartitionName
from quorate.quorum.offline.storage_repair import repair, set_aside_metadata
from quorate.quorum.offline.storage_verify import Verification, verify
from tests.sim.faults.damage import backup_of
from tests.sim.run import PLACES, Simulation, play, simulation
from tests.sim.scripts.staging import DATA, healed, leader, settled, writes_some
from tests.sim.world.cluster import Machine
from tests.sim.world.shape import Shape

SYNCED_S = 4
"""Longer than log.flush.offset.checkpoint.interval.ms of these clusters."""


def checked(machine: Machine) -> Verification:
    return verify(machine.disk, machine.config.log_dir, whole_producers=lambda content: True)


def damaged_logs(machine: Machine) -> list[str]:
    return [each.path for each in checked(machine).results if each.kind is Kind.DAMAGED]


def flip(machine: Machine, directory: str) -> None:
    path = f"{machine.config.log_dir}/{directory}"
    name = max(name for name in machine.disk.list(path) if name.endswith(".log"))
    machine.disk.flip(f"{path}/{name}", 70)


async def leaders_log_is_damaged(stage: Simulation) -> None:
    """The leader dies, and its disk has a flipped bit below its recovery point. It must not serve
    it: it comes back outside of the ISR, takes the rest from the new leader, and joins again."""
    await settled(stage)
    producer = stage.producer("p1", PLACES, pace_s=0.02)
    await writes_some(stage, producer, PLACES)
    await asyncio.sleep(SYNCED_S)
    victim = leader(stage)
    stage.cluster.kill(victim)
    name = PartitionName(*DATA)
    points = checkpoints.read_offsets(
        disk := victim.disk.restart(), victim.config.log_dir, checkpoints.RECOVERY_POINTS_NAME
    )
    victim.disk = disk
    assert points[name] > 1
    flip(victim, str(name))
    assert any(str(name) in path for path in damaged_logs(victim))
    await writes_some(stage, producer, [DATA])
    stage.cluster.start(victim)
    await stage.until(stage.all_in_sync, "all in sync", 5)
    path = f"{victim.config.log_dir}/{name}"
    assert any(each.endswith(".log.damaged") for each in victim.disk.list(path))
    for other in stage.cluster.brokers:  # what it fetched again is all that is left
        if other is not victim:
            stage.cluster.kill(other)
    await asyncio.sleep(1)
    await healed(stage)


async def a_sealed_segment_is_damaged(stage: Simulation) -> None:
    """No start reads it again. The broker leads, and meets the damage when a consumer asks for it:
    it hands out nothing, stops, is started again, and has the rest from the new leader."""
    await settled(stage)
    await stage.admin.spawn(stage.admin.configure_surely(DATA[0], "internal.segment.bytes", 2000))
    producer = stage.producer("p1", PLACES, pace_s=0.02)
    for _ in range(40):
        await writes_some(stage, producer, [DATA])
    await asyncio.sleep(SYNCED_S)
    victim = leader(stage)
    stage.cluster.kill(victim)
    path = f"{victim.config.log_dir}/{PartitionName(*DATA)}"
    sealed = [each for each in victim.disk.files(path) if each.endswith(".log")][1]
    victim.disk.scar(sealed, 200, 0x10)
    victim.scarred = True
    await writes_some(stage, producer, [DATA])
    stage.cluster.start(victim)
    await stage.until(stage.all_in_sync, "all in sync", 5)
    await stage.until(lambda: leader(stage) is victim, "it leads again", 10)
    assert victim.disk.scars() == [sealed], "no start looked at it"
    stage.consumer("reader").start([DATA], 0.05)
    await stage.until(lambda: victim.process is None, "it stops", 5)
    await stage.until(stage.all_in_sync, "all in sync", 5)
    await asyncio.sleep(SYNCED_S)
    assert not victim.disk.scars() and f"{sealed}.damaged" in victim.disk.files(path)
    await healed(stage)


async def leader_epochs_turn(stage: Simulation) -> None:
    """Of the last batch, which nobody synced, and outside of its CRC. The broker comes back outside
    of the ISR: it believes no epoch that was not saved, and joins again."""
    await settled(stage)
    producer = stage.producer("p1", PLACES, pace_s=0.02)
    for bit in range(2):
        await writes_some(stage, producer, [DATA])
        await asyncio.sleep(SYNCED_S)
        await writes_some(stage, producer, [DATA])
        victim = leader(stage)
        stage.cluster.kill(victim)
        path = f"{victim.config.log_dir}/{PartitionName(*DATA)}"
        newest = max(each for each in victim.disk.files(path) if each.endswith(".log"))
        *_, (position, _) = batches(victim.disk.content(newest))
        victim.disk.flip(newest, position + PREFIX_BYTES + 3, 1 << bit)
        await writes_some(stage, producer, [DATA])
        stage.cluster.start(victim)
        await stage.until(stage.all_in_sync, "all in sync", 5)
    await healed(stage)


async def a_voter_lost_what_it_acknowledged(stage: Simulation) -> None:
    """Its disk told writes as durable that it lost, the last ones, so it cannot know. Its leader
    can, and lets it have no part until its log is brought back (KAFKA-12181)."""
    await settled(stage)
    voter = next(each for each in stage.cluster.controllers if each is not stage.active())
    voter.disk.landed = lambda write: []
    voter.lying = True
    await stage.admin.spawn(stage.admin.create_surely("late", 2))
    assert voter.process is not None
    flushed, backup = voter.process.core.log.flushed_offset, backup_of(voter)
    # An unsynced marker of flushed records that survives would tell the voter of the loss.
    stage.cluster.lose_power(voter, forgetful=True)
    voter.scarred = True
    stage.cluster.start(voter)
    assert voter.process is not None and voter.process.core.log.end_offset < flushed
    await stage.admin.spawn(stage.admin.create_surely("later", 1))
    assert voter.process.core.log.end_offset < flushed, "it is refused"
    assert backup is not None
    stage.faults.damage.check_up(voter, backup)
    await stage.until(
        lambda: voter.process is not None and voter.process.core.log.end_offset > flushed,
        "it has caught up",
        5,
    )
    await healed(stage)


async def brokers_metadata_is_damaged(stage: Simulation) -> None:
    """It refuses to start, and says where; set aside by its owner, everything is fetched again."""
    await settled(stage)
    producer = stage.producer("p1", PLACES, pace_s=0.02)
    await writes_some(stage, producer, PLACES)
    await asyncio.sleep(6)  # flushed behind
    victim = leader(stage)
    stage.cluster.kill(victim)
    victim.disk = victim.disk.restart()
    flip(victim, "__cluster_metadata-0")
    victim.may_refuse = True
    stage.cluster.start(victim)
    assert victim.process is None, "it refuses"
    assert "damaged at byte" in stage.cluster.trace[-1]
    victim.may_refuse = False
    victim.disk = victim.disk.restart()
    before = checked(victim)
    assert not before.sound
    repair(victim.disk, before)
    assert damaged_logs(victim), "a repair alone leaves it"
    set_aside_metadata(victim.disk, victim.config.log_dir, "aside")
    assert not damaged_logs(victim)
    stage.cluster.start(victim)
    await stage.until(stage.all_in_sync, "all in sync", 5)
    await healed(stage)


async def active_controllers_snapshot_is_damaged(stage: Simulation) -> None:
    """It is quiet, so the next one would be long in coming: it is taken at once, for who starts
    from nothing meanwhile."""
    await settled(stage)
    active = stage.active()
    assert active.process is not None
    snapshots = active.process.core.storage.snapshots
    await stage.until(lambda: snapshots.latest is not None, "there is a snapshot", 20)
    old = snapshots.latest
    assert old is not None
    victim = stage.cluster.brokers[0]
    stage.cluster.kill(victim)
    victim.disk = victim.disk.restart()
    set_aside_metadata(victim.disk, victim.config.log_dir, "aside")
    active.disk.scar(snapshots.path(old), 200, 0x10)
    active.scarred = True
    stage.cluster.start(victim)
    process = victim.process
    assert process is not None
    await stage.until(lambda: process.core.log.start_offset > 0, "it has a snapshot", 5)
    assert process.core.log.start_offset > old.offset
    await stage.until(stage.all_in_sync, "all in sync", 5)
    await healed(stage)


def test_an_active_controllers_snapshot_is_damaged() -> None:
    shape = Shape(overrides={"metadata.log.max.record.bytes.between.snapshots": "3000"})
    with simulation("active_controllers_snapshot_is_damaged", shape) as stage:
        play(stage, active_controllers_snapshot_is_damaged(stage))


def test_a_leaders_log_is_damaged() -> None:
    with simulation("leaders_log_is_damaged", None) as stage:
        play(stage, leaders_log_is_damaged(stage))


def test_a_sealed_segment_is_damaged() -> None:
    with simulation("a_sealed_segment_is_damaged", None) as stage:
        play(stage, a_sealed_segment_is_damaged(stage))


def test_leader_epochs_turn() -> None:
    with simulation("leader_epochs_turn", None) as stage:
        play(stage, leader_epochs_turn(stage))


def test_a_voter_lost_what_it_acknowledged() -> None:
    with simulation("a_voter_lost_what_it_acknowledged", None) as stage:
        play(stage, a_voter_lost_what_it_acknowledged(stage))


def test_a_brokers_metadata_is_damaged() -> None:
    with simulation("brokers_metadata_is_damaged", None) as stage:
        play(stage, brokers_metadata_is_damaged(stage))
