"""Damage to synced data on a whole cluster: no acknowledged record is lost."""

from __future__ import annotations

import asyncio

import pytest

from quorate.quorum.log.batches.batch import PREFIX_BYTES, batches
from quorate.quorum.log.checking.check_result import Kind
from quorate.quorum.log.files import checkpoints
from quorate.quorum.log.files.errors import CorruptLog
from quorate.quorum.log.files.names import PartitionName
from quorate.quorum.offline.storage_repair import repair, set_aside_metadata
from quorate.quorum.offline.storage_verify import Verification, verify
from tests.sim.checks.committed_log import Violation
from tests.sim.faults.damage import backup_of
from tests.sim.run import PLACES, Simulation, play, simulation
from tests.sim.scripts.staging import DATA, healed, leader, settled, writes_some
from tests.sim.world.cluster import Machine
from tests.sim.world.shape import Shape

SYNCED_S = 4
"""A time that is longer than log.flush.offset.checkpoint.interval.ms of these clusters."""


def checked(machine: Machine) -> Verification:
    return verify(machine.disk, machine.config.log_dir, whole_producers=lambda content: True)


def damaged_logs(machine: Machine) -> list[str]:
    return [each.path for each in checked(machine).results if each.kind is Kind.DAMAGED]


def flip(machine: Machine, directory: str) -> None:
    path = f"{machine.config.log_dir}/{directory}"
    name = max(name for name in machine.disk.list(path) if name.endswith(".log"))
    machine.disk.flip(f"{path}/{name}", 70)


async def leaders_log_is_damaged(stage: Simulation) -> None:
    """Kill the leader, and flip a bit on its disk below its recovery point. It must not serve the
    damaged batch: it comes back outside of the ISR, fetches the rest from the new leader, and joins
    again."""
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
    for other in stage.cluster.brokers:  # only the records that it fetched again are left
        if other is not victim:
            stage.cluster.kill(other)
    await asyncio.sleep(1)
    await healed(stage)


async def a_sealed_segment_is_damaged(stage: Simulation) -> None:
    """Damage a sealed segment, which no start reads again. The broker leads, and finds the damage
    when a consumer asks for the segment. It sends no damaged batch, stops, is started again, and
    fetches the rest from the new leader."""
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
    """Flip bits in the leader epoch of the last batch, which was not synced. The epoch is outside
    of the CRC. The broker comes back outside of the ISR, believes no epoch that was not saved, and
    joins again."""
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
    """Let the disk of a voter lose its last writes, which it reported as durable. The voter cannot
    detect this. Its leader detects it, and refuses the voter's fetches until its log is restored
    (KAFKA-12181)."""
    await settled(stage)
    voter = next(each for each in stage.cluster.controllers if each is not stage.active())
    voter.disk.landed = lambda write: []
    voter.lying = True
    await stage.admin.spawn(stage.admin.create_surely("late", 2))
    assert voter.process is not None
    flushed, backup = voter.process.core.log.flushed_offset, backup_of(voter)
    # If an unsynced flushed marker survived, it would reveal the loss to the voter.
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
    """Damage the metadata log of a broker. The broker refuses to start, and names the place. When
    its owner has set the log aside, the broker fetches everything again."""
    await settled(stage)
    producer = stage.producer("p1", PLACES, pace_s=0.02)
    await writes_some(stage, producer, PLACES)
    await asyncio.sleep(6)  # the broker flushes meanwhile
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
    """Damage the snapshot of an active controller. The controller is idle, so the next snapshot
    would come late. It takes one immediately, for a broker that has no log."""
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


async def a_broker_stops_again(stage: Simulation) -> None:
    await settled(stage)
    broker, damage = stage.cluster.brokers[0], CorruptLog("/b4/data-0/0.log", 5, 1, "its CRC fails")
    stage.faults.damage.met_once(broker, damage)
    broker.power_losses += 1
    stage.faults.damage.met_once(broker, damage)
    stage.faults.damage.met_once(broker, damage)
    await asyncio.sleep(0)


def test_a_broker_stops_again_for_known_damage() -> None:
    again = pytest.raises(Violation, match="stops again for known damage")
    with simulation("a broker stops again", None) as stage, again:
        play(stage, a_broker_stops_again(stage))
