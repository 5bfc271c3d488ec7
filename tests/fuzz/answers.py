"""The answers that a node gets to its own requests, altered on their way.

A broker asks the controller (Raft's Fetch and snapshots, registration, heartbeats, ISR changes) and
the leaders of its partitions (Fetch). An input names the answer, and holds the seed of what is
altered. The broker may close the link. It may not stop, and it must ask again.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import msgpack  # type: ignore[import-untyped]

from quorate.quorum.controller.state.messages import BrokerHeartbeatResponse
from quorate.quorum.protocol.schemas.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from quorate.quorum.protocol.schemas.topics import CreateTopicsRequest
from quorate.quorum.raft.messages import FetchResponse
from quorate.quorum.rpc.messages import BY_CLASS
from quorate.quorum.seams import Address, Wire
from tests.fuzz import messages
from tests.fuzz.mutations import mutated
from tests.fuzz.target import IncrementalWork, Target
from tests.ports.node import PortCluster, running
from tests.ports.requests import TIMEOUT_MS, batch, create
from tests.sim.world.cluster import CLIENT_PORT, Machine
from tests.sim.world.link import SimLink

WAIT_S = 1.0
"""The longest wait for an answer to alter: a follower asks twice a second at least."""
STEP_S, SETTLE_S = 0.02, 30.0
FETCHED = BY_CLASS[FetchResponse].number
OBEYED = {BY_CLASS[BrokerHeartbeatResponse].number}
"""An honest broker obeys a heartbeat's answer that lets it shut down."""
WIRES = (Wire.KAFKA, Wire.NODE)
"""The first byte of an input chooses answers of a partition's leader, or of the controller."""
SEED_BYTES = 8
TOPIC = "followed"
PARTITIONS = 2
PRODUCE_VERSION = 9
CLIENT = "client"


class Answers(Target):
    """Two brokers and a controller. The answers to both brokers are altered, one for each input."""

    def __init__(self, node: PortCluster) -> None:
        self._node = node
        self._cluster = node.cluster
        self._chance: random.Random | None = None
        self._fetched: set[str] = set()
        self._wire = Wire.KAFKA
        self._cluster.network.alter = self._altered
        self._ports = [node.connect(Address(each.name, CLIENT_PORT)) for each in self._brokers]
        self.steps = IncrementalWork(node.loop)

    @property
    def _brokers(self) -> list[Machine]:
        return list(self._cluster.brokers)

    def feed(self, data: bytes) -> None:
        if not data:
            return
        self._wire = WIRES[data[0] % len(WIRES)]
        self._chance = random.Random(data[1:])
        if self._wire is Wire.KAFKA:
            self._produce()
        until_s = self._node.loop.time() + WAIT_S
        while self._chance is not None and self._node.loop.time() < until_s:
            self._node.run(STEP_S)
        self._chance = None
        self._node.run(STEP_S)

    def _produce(self) -> None:
        for index, raw in enumerate(self._ports):
            if raw.closed:
                address = Address(self._brokers[index].name, CLIENT_PORT)
                raw = self._ports[index] = self._node.connect(address)
            raw.frames.clear()
            for partition in range(PARTITIONS):
                self._node.send(raw, appended(partition), PRODUCE_VERSION, 1)

    def _altered(self, link: SimLink, frame: bytes) -> bytes:
        if not link.asks or link.host.name == CLIENT:
            return frame
        if link.wire is Wire.NODE and msgpack.unpackb(frame)[0][0] == FETCHED:
            self._fetched.add(link.host.name)
        chance = self._chance
        if chance is None or link.wire is not self._wire:
            return frame
        changed = damaged_row(frame, chance) if link.wire is Wire.NODE else mutated(frame, chance)
        if changed != frame:
            self._chance = None
        return changed

    def systematic(self) -> Iterator[bytes]:
        for wire in range(len(WIRES)):
            yield bytes([wire]) + bytes(SEED_BYTES)

    def drawn(self, chance: random.Random) -> bytes:
        return bytes([chance.randrange(len(WIRES))]) + chance.randbytes(SEED_BYTES)

    def settle(self) -> None:
        self._node.run(SETTLE_S)

    def check(self) -> None:
        self._node.until(self._node._serves)
        self._fetched.clear()
        self._node.until(lambda: len(self._fetched) == len(self._brokers))


def damaged_row(frame: bytes, chance: random.Random) -> bytes:
    """Return the frame with a part of one message at its edge. Leave out what a broker obeys."""
    rows = msgpack.unpackb(frame)
    index = chance.randrange(len(rows))
    found = list(messages.paths(rows[index]))
    if not found or rows[index][0] in OBEYED:
        return frame
    path = chance.choice(found)
    rows[index] = messages.with_part(
        rows[index], path, chance.choice(messages.edges(messages.at(rows[index], path)))
    )
    return messages.packed(rows)


def appended(partition: int) -> ProduceRequest:
    data = PartitionProduceData(index=partition, records=batch())
    topic = TopicProduceData(name=TOPIC, partition_data=(data,))
    return ProduceRequest(acks=1, timeout_ms=1000, topic_data=(topic,))


@contextmanager
def answers() -> Iterator[Target]:
    with running(brokers=2, default_replication_factor="2") as node:
        raw = node.connect(node.broker_port)
        (topic,) = create(TOPIC, PARTITIONS).topics
        wanted = replace(topic, replication_factor=2)
        node.ask(raw, CreateTopicsRequest(topics=(wanted,), timeout_ms=TIMEOUT_MS), 5)
        raw.link.abort()
        yield Answers(node)
