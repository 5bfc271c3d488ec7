"""The parts that scripts have in common: wait for a healthy cluster, cut, isolate, heal and
check."""

from __future__ import annotations

from collections.abc import Iterable

from tests.sim.clients.clients import Producer
from tests.sim.clients.history import Place
from tests.sim.run import PLACES, Simulation
from tests.sim.world.cluster import Machine

DATA: Place = ("data", 0)


async def settled(stage: Simulation) -> None:
    await stage.ready({"data": len(PLACES)})
    await stage.until(stage.all_in_sync, "all in sync", 5)


async def healed(stage: Simulation) -> None:
    stage.cluster.network.heal()
    for machine in stage.cluster.machines.values():
        machine.disk_delay_s = 0
        if machine.process is None:
            stage.cluster.start(machine)
    await stage.reckoning()


def cut(stage: Simulation, sources: Iterable[Machine], targets: Iterable[Machine]) -> None:
    """Block one direction, from the sources to the targets."""
    for source in sources:
        for target in targets:
            if source is not target:
                stage.cluster.network.block(source.name, target.name)


def isolate(stage: Simulation, machine: Machine) -> None:
    others = list(stage.cluster.machines.values())
    cut(stage, [machine], others)
    cut(stage, others, [machine])


def leader(stage: Simulation) -> Machine:
    machine = stage.leader_of(DATA)
    assert machine is not None
    return machine


async def writes_some(stage: Simulation, producer: Producer, places: list[Place]) -> None:
    """Wait until each partition has acknowledged one more write."""
    before = {p: len(stage.history.of(producer.name, p).acknowledged) for p in places}
    await stage.until(
        lambda: all(
            len(stage.history.of(producer.name, p).acknowledged) > before[p] for p in places
        ),
        f"{producer.name} writes to {places}",
        stage.cluster.network.settings.delay_ms,
    )


def cluster_leads(machine: Machine) -> bool:
    return machine.process is not None and machine.process.core.replica.raft.role == "leader"


def knows(machine: Machine, other: Machine) -> bool:
    assert machine.process is not None and other.process is not None
    broker = machine.process.core.image.brokers.get(other.id)
    return (
        broker is not None
        and not broker.fenced
        and broker.incarnation_id == other.process.core.incarnation
    )


def is_unfenced(stage: Simulation, machine: Machine) -> bool:
    assert machine.process is not None
    broker = stage.cluster.newest_image().brokers.get(machine.id)
    incarnation = machine.process.core.incarnation
    return broker is not None and not broker.fenced and broker.incarnation_id == incarnation


def proposes(machine: Machine, joining: Machine) -> bool:
    assert machine.process is not None and machine.process.broker is not None
    return any(
        hosted.topic == DATA[0]
        and hosted.key[1] == DATA[1]
        and hosted.partition.leadership is not None
        and hosted.partition.leadership.isr.in_flight
        and joining.id in hosted.partition.leadership.isr.maximal
        for hosted in machine.process.broker.replicas.registry
    )
