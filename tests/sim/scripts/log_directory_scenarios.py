"""Scripted failures of one log directory of a broker (KIP-858), with production's node classes."""

from __future__ import annotations

import errno

from quorate.quorum.directory_ids import UNASSIGNED
from quorate.quorum.metadata.replica_directories import replica_directory
from tests.sim.clients.history import Place
from tests.sim.run import PLACES, Simulation
from tests.sim.scripts.staging import healed, settled, writes_some
from tests.sim.world.cluster import Machine, Shape

TWO = Shape(overrides={"log.dirs": "/one,/two", "metadata.log.dir": "/metadata"})
FAILED = "/one"


def fail_directory(machine: Machine, path: str) -> None:
    """Let every disk call below `path` fail, until the broker is started again."""

    def before(operation: str, file: str) -> None:
        if file == path or file.startswith(f"{path}/"):
            machine.disk.hurt += 1
            raise OSError(errno.EIO, "EIO", file)

    machine.disk.before = before


def held_in(stage: Simulation, machine: Machine, path: str) -> list[Place]:
    """Return the partitions of "data" whose log is in that directory of the broker."""
    assert machine.process is not None and machine.process.broker is not None
    return [
        (hosted.topic, hosted.key[1])
        for hosted in machine.process.broker.replicas.registry
        if hosted.topic == "data" and hosted.log.directory.startswith(f"{path}/")
    ]


def all_placed(stage: Simulation) -> bool:
    """Return True if the metadata names the directory of every replica of "data"."""
    image = stage.cluster.newest_image()
    topic = image.topic("data")
    assert topic is not None
    return all(
        replica_directory(partition, replica) != UNASSIGNED
        for partition in topic.partitions.values()
        for replica in partition.replicas
    )


async def directory_failed(stage: Simulation) -> None:
    """Fail one directory of a broker. Other brokers lead its partitions, and the broker continues
    with the partitions of its other directory. After a restart it joins the ISRs again."""
    await settled(stage)
    await stage.until(lambda: all_placed(stage), "directories are assigned", 5)
    producer = stage.producer("p1", PLACES, pace_s=0.02)
    await writes_some(stage, producer, PLACES)
    victim = next(
        each
        for each in stage.cluster.brokers
        if any(stage.leader_of(place) is each for place in held_in(stage, each, FAILED))
    )
    lost = held_in(stage, victim, FAILED)
    kept = [place for place in PLACES if place not in lost]
    assert lost and kept
    fail_directory(victim, FAILED)
    await stage.until(
        lambda: all(victim.id not in stage.isr_of(place) for place in lost), "moved away", 5
    )
    assert victim.process is not None, "the broker does not stop"
    assert all(victim.id in stage.isr_of(place) for place in kept)
    await writes_some(stage, producer, PLACES)
    stage.cluster.kill(victim)
    producer.stopping = True
    await healed(stage)


async def last_members_directory_failed(stage: Simulation) -> None:
    """Fail the directory of the last member of an ISR. No other replica leads, although the brokers
    of the others are unfenced, until the directory is back with all records."""
    await settled(stage)
    await stage.until(lambda: all_placed(stage), "directories are assigned", 5)
    producer = stage.producer("p1", PLACES, pace_s=0.02)
    await writes_some(stage, producer, PLACES)
    victim, place = next(
        (each, place)
        for each in stage.cluster.brokers
        for place in held_in(stage, each, FAILED)
        if stage.leader_of(place) is each
    )
    others = [each for each in stage.cluster.brokers if each is not victim]
    for each in others:
        stage.cluster.kill(each)
    await stage.until(lambda: stage.isr_of(place) == (victim.id,), "alone", 10)
    fail_directory(victim, FAILED)
    await stage.until(lambda: stage.leader_of(place) is None, "leaderless", 10)
    for each in others:
        stage.cluster.start(each)
    producer.stopping = True
    stage.cluster.kill(victim)
    await healed(stage)
