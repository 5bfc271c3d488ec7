"""A seeded random walk over whole replica managers: network and processes fail, then everything
heals.

At the end, every record acknowledged with acks=all is on every replica, once, and all logs are
equal.
"""

from __future__ import annotations

import random
from contextlib import closing
from dataclasses import replace

import pytest

from quorate.broker.partition.settings import PartitionSettings
from quorate.quorum.ids import Uuid
from quorate.quorum.log.batches.compression import Codec
from quorate.quorum.log.batches.recompression import Compression
from quorate.quorum.log.files.settings import LogSettings
from quorate.quorum.protocol.hot import ProducePartitionResult
from tests.unit.replication.cluster import ReplicaCluster, led_by

PARTITIONS = 4
IDS = (1, 2, 3)


class Walk:
    """One walk. With `keys`, the topic flushes after each append or two, preallocates its segments,
    and decompresses the batches of its producers."""

    def __init__(self, seed: int, *, keys: bool = False) -> None:
        self.random = random.Random(seed)
        self.cluster = ReplicaCluster(
            seed=seed,
            replica_lag_time_max_ms=1000,
            flush_checkpoint_interval_ms=700,
            high_watermark_checkpoint_interval_ms=300,
        )
        self.cluster.partition_settings = PartitionSettings(
            min_insync_replicas=2, replica_lag_time_max_ms=1000
        )
        self.codec = Codec.NONE
        if keys:
            self.codec = Codec.GZIP
            self.cluster.partition_settings = replace(
                self.cluster.partition_settings, compression=Compression(Codec.NONE)
            )
            self.cluster.log_settings = LogSettings(
                segment_bytes=500,
                index_interval_bytes=100,
                index_max_bytes=36,
                segment_ms=10,
                segment_jitter_ms=5,
                preallocate=True,
                flush_messages=self.random.randrange(1, 3),
            )
        replicas = [led_by(*(1 + (index + turn) % 3 for turn in range(3))) for index in range(4)]
        self.topic: Uuid = self.cluster.create("t", replicas)
        self.sent: dict[bytes, tuple[int, list[ProducePartitionResult]]] = {}
        self.cluster.run(100)

    def produce(self) -> None:
        index = self.random.randrange(PARTITIONS)
        leader = self.cluster.image.topics[self.topic].partitions[index].leader
        broker_id = leader if self.random.random() < 0.8 else self.random.choice(IDS)
        if broker_id not in self.cluster.nodes:
            return
        for _ in range(self.random.randrange(1, 4)):
            value = b"value %06d" % len(self.sent)
            answers = self.cluster.produce(
                broker_id,
                self.topic,
                value,
                partition_id=index,
                timeout_ms=2000,
                producer={"codec": self.codec},
            )
            self.sent[value] = (index, answers)

    def elect(self) -> None:
        index = self.random.randrange(PARTITIONS)
        isr = self.cluster.image.topics[self.topic].partitions[index].isr
        self.cluster.change(self.topic, index, leader=self.random.choice(isr))
        self.hear()

    def hear(self) -> None:
        for broker_id in self.cluster.nodes:
            if self.random.random() < 0.6:
                self.cluster.spread(broker_id)

    def restart(self) -> None:
        """Kill a broker or cut its power, and remove it from every ISR before it returns, as the
        controller does after an unclean shutdown. Never remove the last member."""
        broker_id = self.random.choice(IDS)
        partitions = self.cluster.image.topics[self.topic].partitions
        if any(partitions[index].isr == (broker_id,) for index in range(PARTITIONS)):
            return
        killed = self.random.random() < 0.5
        disk = (self.cluster.kill if killed else self.cluster.cut_power)(broker_id)
        for index in range(PARTITIONS):
            value = partitions[index]
            if broker_id in value.isr:
                isr = tuple(each for each in value.isr if each != broker_id)
                leader = {"leader": isr[0]} if value.leader == broker_id else {}
                self.cluster.change(self.topic, index, isr=isr, **leader)
        self.hear()
        self.cluster.run(self.random.choice((1, 300)))
        self.cluster.start(broker_id, disk)

    def cut(self) -> None:
        self.cluster.network.isolate(f"b{self.random.choice(IDS)}")

    def heal(self) -> None:
        self.cluster.network.heal()

    def step(self) -> None:
        actions = (self.produce, self.elect, self.hear, self.restart, self.cut, self.heal)
        self.random.choices(actions, (12, 2, 3, 1, 1, 2))[0]()
        self.cluster.lose_answers = self.random.random() < 0.2
        self.cluster.run(self.random.choice((0.2, 2, 20, 200)))

    def settle(self) -> None:
        self.cluster.lose_answers = False
        self.cluster.network.heal()
        for index in range(PARTITIONS):  # new epochs: whatever hangs in the air is overruled
            isr = self.cluster.image.topics[self.topic].partitions[index].isr
            self.cluster.change(self.topic, index, leader=isr[0])
        self.cluster.spread()
        self.cluster.run(4000)

    def check(self) -> None:
        for index in range(PARTITIONS):
            assert sorted(self.cluster.image.topics[self.topic].partitions[index].isr) == [1, 2, 3]
            contents = [self.cluster.content(each, self.topic, index) for each in IDS]
            assert contents[0] == contents[1] == contents[2]
            whole = b"".join(contents[0])
            for value, (partition_id, answers) in self.sent.items():
                assert len(answers) < 2, f"{value!r} was answered twice"
                if partition_id == index and answers and not answers[0].error:
                    assert whole.count(value) == 1, f"{value!r} was acknowledged"


@pytest.mark.parametrize("keys", [False, True], ids=["defaults", "keys"])
@pytest.mark.parametrize("seed", range(20))
def test_walk(seed: int, keys: bool) -> None:
    walk = Walk(seed, keys=keys)
    with closing(walk.cluster):
        for _ in range(40):
            walk.step()
        walk.settle()
        walk.check()
