"""A minute of damaged frames on every port of real processes: nobody dies, nothing grows, and
another client's records arrive as before."""

from __future__ import annotations

import os
import random
import socket
import struct
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicCollection

from quorate.cli.nodes.cluster_dir import alive
from quorate.quorum.ids import Uuid
from tests.clients.cluster import ProcessCluster
from tests.clients.librdkafka import admin, create_topic
from tests.kafka.one_node import Connection
from tests.ports.fuzz import frames
from tests.ports.requests import READ, WRITTEN, World, preparation

pytestmark = [pytest.mark.clients, pytest.mark.long, pytest.mark.timeout(400)]

FUZZ_S = 60.0
CONNECTIONS = 40
BYSTANDER = "bystander"
MAX_GROWTH_KB = 100 * 1024
MAX_MORE_FILES = 64  # logs of topics that the fuzz made, and connections that end late
PAUSE_S = 0.01  # between frames to a node: the cores are for everybody
MAX_P99_S = 2.0
READ_TIMEOUT_S = 30.0


@dataclass(slots=True)
class Fuzzer(threading.Thread):
    """Sends to one port until it is stopped, and replaces a closed connection."""

    address: tuple[str, int]
    world: World
    seed: int
    stop: threading.Event
    sent: int = 0
    failed: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        threading.Thread.__init__(self, daemon=True)

    __hash__ = threading.Thread.__hash__

    def run(self) -> None:
        source = frames(self.world, self.seed)
        chance = random.Random(self.seed)
        open_: list[socket.socket] = []
        while not self.stop.is_set():
            while len(open_) < CONNECTIONS:
                open_.append(socket.create_connection(self.address, timeout=5))
                open_[-1].setblocking(False)
            frame = next(source)
            size = chance.choice((len(frame),) * 20 + (-1, 0, 2**31 - 1, len(frame) + 9))
            at = chance.randrange(CONNECTIONS)
            try:
                open_[at].send(struct.pack(">i", size) + frame)
                while open_[at].recv(1 << 16):
                    pass
                ended = True
            except BlockingIOError:
                ended = chance.random() < 0.01
            except OSError:
                ended = True
            if ended:
                open_.pop(at).close()
            self.sent += 1
            time.sleep(PAUSE_S)
        for each in open_:
            each.close()


def memory_kb(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    raise AssertionError(f"no VmRSS of {pid}")


def files(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def measured(pids: list[int]) -> dict[int, tuple[int, int]]:
    return {pid: (memory_kb(pid), files(pid)) for pid in pids}


class Bystander:
    """Produces a record, waits until it is read, and so on."""

    def __init__(self, bootstrap: str) -> None:
        self.seconds: list[float] = []
        self._producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 0})
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": BYSTANDER,
                "auto.offset.reset": "earliest",
                "fetch.wait.max.ms": 100,
            }
        )
        self._consumer.subscribe([BYSTANDER])

    def round_trip(self) -> None:
        began = time.monotonic()
        value = str(len(self.seconds)).encode()
        self._producer.produce(BYSTANDER, value)
        assert self._producer.flush(READ_TIMEOUT_S) == 0
        while True:
            message = self._consumer.poll(READ_TIMEOUT_S)
            assert message is not None, "the record does not come"
            if message.error() is None and message.value() == value:
                break
        self.seconds.append(time.monotonic() - began)

    def close(self) -> None:
        self._consumer.close()


def prepared(cluster: ProcessCluster) -> World:
    node = cluster.entry()["brokers"][0]
    connection = Connection(node["port"])
    for request, version in preparation():
        connection.ask(request, version)
    connection.close()
    ids = {name: Uuid(bytes.fromhex(uuid_hex(cluster.bootstrap, name))) for name in (READ, WRITTEN)}
    return World(node["id"], topic_id=ids[WRITTEN], read_id=ids[READ])


def uuid_hex(bootstrap: str, name: str) -> str:
    client = admin(bootstrap)
    described = client.describe_topics(TopicCollection([name]))[name].result(READ_TIMEOUT_S)
    most, least = (
        described.topic_id.get_most_significant_bits(),
        described.topic_id.get_least_significant_bits(),
    )
    return struct.pack(">qq", most, least).hex()


def test_a_minute_of_damaged_frames(own_cluster: ProcessCluster) -> None:
    cluster = own_cluster
    create_topic(admin(cluster.bootstrap), BYSTANDER, 1, 3)
    world = prepared(cluster)
    bystander = Bystander(cluster.bootstrap)
    bystander.round_trip()
    nodes = cluster.nodes()
    pids = [node["pid"] for node in nodes if node["pid"] is not None]
    stop = threading.Event()
    fuzzers = [
        Fuzzer((node["host"], node["port"]), world, seed, stop) for seed, node in enumerate(nodes)
    ]
    for each in fuzzers:
        each.start()
    warm_s = time.monotonic() + FUZZ_S / 4
    end_s = time.monotonic() + FUZZ_S
    before: dict[int, tuple[int, int]] = {}
    bystander.seconds.clear()
    while time.monotonic() < end_s:
        bystander.round_trip()
        if not before and time.monotonic() > warm_s:
            before = measured(pids)
        assert all(map(alive, pids)), "a node died"
    after = measured(pids)
    stop.set()
    for each in fuzzers:
        each.join(10)
    bystander.close()
    assert min(each.sent for each in fuzzers) > 1000
    for pid in pids:
        assert after[pid][0] - before[pid][0] < MAX_GROWTH_KB, (before, after)
        assert after[pid][1] - before[pid][1] < MAX_MORE_FILES, (before, after)
    ordered = sorted(bystander.seconds)
    assert ordered[int(len(ordered) * 0.99)] < MAX_P99_S, ordered[-10:]
    assert [node["pid"] for node in cluster.nodes()] == [node["pid"] for node in nodes]
