"""Damage that a read finds in a running broker: the broker stops, or refuses the read."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from quorate.quorum.ids import Uuid
from quorate.quorum.log.batches.batch import batches
from quorate.quorum.log.files.errors import CorruptLog
from quorate.quorum.protocol.errors import ErrorCode
from tests.sim.world.disk import SimDisk
from tests.unit.replication.cluster import ReplicaCluster
from tests.unit.replication.test_damage import logs, written

MakeCluster = Callable[..., ReplicaCluster]


def sealed_and_damaged(
    make_cluster: MakeCluster, brokers: int = 3
) -> tuple[ReplicaCluster, Uuid, int]:
    """Kill broker 1 and flip a bit in the last batch of its first segment, which a start does not
    read. Return the offset of that batch."""
    cluster, topic = written(make_cluster, brokers)
    disk = cluster.kill(1)
    first, second = logs(disk)[:2]
    offset = int(second.rpartition("/")[2].removesuffix(".log")) - 1
    *_, (position, header) = batches(disk.content(first))
    assert header.base_offset == offset
    disk.flip(first, position + header.size_bytes - 2)
    cluster.change(topic, isr=tuple(range(2, brokers + 1)) or (1,), leader=brokers)
    cluster.spread()
    cluster.start(1, disk)
    cluster.run(3000)
    cluster.change(topic, leader=1)
    cluster.spread()
    cluster.run(50)
    return cluster, topic, offset


def stop_at(cluster: ReplicaCluster, broker_id: int, read: Callable[[], object]) -> CorruptLog:
    """Stop as a node does after an unhandled exception."""
    try:
        read()
        cluster.run(50)
    except CorruptLog as damage:
        cluster.nodes[broker_id].replicas.node_failed(damage)
        return damage
    pytest.fail("it was handed out")


@pytest.mark.parametrize("reader", ["consumer", "follower"])
def test_a_leader_that_reads_damage_stops_and_is_repaired(
    make_cluster: MakeCluster, reader: str
) -> None:
    cluster, topic, offset = sealed_and_damaged(make_cluster)
    whole = cluster.content(2, topic)

    def read() -> None:
        if reader == "consumer":
            cluster.fetch(1, topic, offset)
        else:
            cluster.start(4, SimDisk(cluster.random))
            cluster.change(topic, replicas=(1, 2, 3, 4), adding=(4,))
            cluster.spread()

    damage = stop_at(cluster, 1, read)
    assert damage.offset == offset and "quorate storage verify" in str(damage)
    disk = cluster.kill(1)
    cluster.change(topic, isr=(2, 3), leader=2)
    cluster.spread()
    cluster.start(1, disk)
    cluster.run(3000)
    assert cluster.content(1, topic) == whole
    partition = cluster.image.partition(topic, 0)
    assert partition is not None and 1 in partition.isr


def test_what_only_a_damaged_leader_has_is_refused(
    make_cluster: MakeCluster, caplog: pytest.LogCaptureFixture
) -> None:
    """The other records are served, and appends continue: a broker that stopped would not start
    again."""
    cluster, topic, offset = sealed_and_damaged(make_cluster)
    cluster.change(topic, isr=(1,))
    cluster.spread()
    cluster.run(50)
    for _ in range(3):
        assert cluster.fetch(1, topic, offset)[0].error == ErrorCode.CORRUPT_MESSAGE
    assert caplog.text.count("no other replica is in sync") == 1
    assert f"offset {offset}" in caplog.text
    assert cluster.fetch(1, topic, offset + 1)[0].error == ErrorCode.NONE
    assert cluster.produce(1, topic, acks=1)[0].error == ErrorCode.NONE


def test_the_last_of_an_isr_refuses_what_it_was_stopped_by(make_cluster: MakeCluster) -> None:
    """The other brokers died before this one left the ISR, so their records may be incomplete."""
    cluster, topic, offset = sealed_and_damaged(make_cluster)
    stop_at(cluster, 1, lambda: cluster.fetch(1, topic, offset))
    disk = cluster.kill(1)
    cluster.change(topic, isr=(1,), leader=-1)
    cluster.spread()
    cluster.start(1, disk)
    with pytest.raises(AssertionError, match=f"offset {offset}"):
        cluster.run(50)
    cluster.failures.clear()
