"""Snapshots of producer states, over restarts and changes of the leader."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from quorate.broker.logs import producer_snapshots
from quorate.broker.partition.producer_state import ProducerStates
from quorate.quorum.log.batches.batch import read_header
from quorate.quorum.protocol.errors import ErrorCode
from tests.unit.partition.harness import batch
from tests.unit.replication.cluster import LOG_DIR, ReplicaCluster, led_by

MakeCluster = Callable[..., ReplicaCluster]


def test_r59_duplicates_are_recognised_after_restart_and_leader_change(
    make_cluster: MakeCluster,
) -> None:
    """Redpanda #3039, #3003: a retry became a duplicate after a change of leader."""
    cluster = make_cluster(brokers=2)
    topic = cluster.create("t", [led_by(1, 2)])
    cluster.run(50)

    def producer(sequence: int) -> dict[str, Any]:
        return {"producer_id": 7, "producer_epoch": 0, "base_sequence": sequence}

    for sequence in range(3):
        cluster.produce(1, topic, producer=producer(sequence))
    cluster.run(50)
    cluster.change(topic, leader=2)
    cluster.spread()
    cluster.run(50)
    (again,) = cluster.produce(2, topic, acks=1, producer=producer(2))
    assert (again.error, again.base_offset) == (0, 2)
    disk = cluster.shut_down(2)
    assert disk.exists(f"{LOG_DIR}/t-0/{3:020d}.snapshot")
    cluster.start(2, disk)
    cluster.run(50)
    (again,) = cluster.produce(2, topic, acks=1, producer=producer(2))
    assert (again.error, again.base_offset) == (0, 2)
    (gap,) = cluster.produce(2, topic, acks=1, producer=producer(5))
    assert gap.error == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    disk = cluster.kill(2)
    disk.remove(f"{LOG_DIR}/t-0/{3:020d}.snapshot")
    cluster.start(2, disk)
    cluster.run(50)
    answers = cluster.produce(2, topic, acks=1, producer=producer(0))
    cluster.run(50)
    (first,) = answers
    assert (first.error, first.base_offset) == (0, 0), "rebuilt from the log"


def test_producer_snapshot_keeps_every_batch_that_a_retry_may_repeat() -> None:
    """Found by simulation seed 141: after kill -9, the retry of a batch before the last one was
    answered OUT_OF_ORDER_SEQUENCE_NUMBER."""
    states = ProducerStates()
    for sequence in range(3):
        data = batch(1, producer_id=7, producer_epoch=0, base_sequence=sequence)
        states.append(read_header(data)._replace(base_offset=sequence))
    loaded = producer_snapshots.decode(producer_snapshots.encode(states))
    assert loaded is not None
    assert list(loaded.producers[7].batches) == list(states.producers[7].batches)


def test_producer_snapshot_round_trip_and_damage() -> None:
    states = ProducerStates()
    assert producer_snapshots.decode(producer_snapshots.encode(states)) is not None
    content = bytearray(producer_snapshots.encode(states))
    content[7] ^= 1
    assert producer_snapshots.decode(bytes(content)) is None
    assert producer_snapshots.decode(b"") is None
