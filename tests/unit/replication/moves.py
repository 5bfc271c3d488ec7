"""Helpers of the tests of moves between log directories."""

from __future__ import annotations

from dataclasses import replace

from quorate.quorum.ids import Uuid
from quorate.quorum.log.files.names import future_partition_of, partition_of
from quorate.quorum.log.log import Log
from quorate.quorum.metadata.image import Partition
from quorate.quorum.protocol.errors import ErrorCode
from tests.unit.replication.cluster import ReplicaCluster, led_by

A, B, C = "/a", "/b", "/c"


def committed(cluster: ReplicaCluster) -> None:
    """Let the controller record every reported directory, and answer a little later."""

    def assigned(broker_id: int, key: tuple[Uuid, int], directory: Uuid, accepted: object) -> None:
        def commit() -> None:
            value = cluster.image.partition(*key)
            if value is None or broker_id not in value.replicas:
                return
            old = value.directories or (Uuid(bytes(16)),) * len(value.replicas)
            index = value.replicas.index(broker_id)
            cluster.change(*key, directories=(*old[:index], directory, *old[index + 1 :]))
            cluster.spread()
            assert callable(accepted)
            accepted()

        cluster.loop.call_later(0.01, commit)

    cluster.on_assigned = assigned


def placed_in(cluster: ReplicaCluster, directory: str | Uuid) -> Partition:
    """Return a partition of broker 1, which the metadata places in this log directory."""
    if isinstance(directory, str):
        directory = cluster.directory_id(1, directory)
    return replace(led_by(1), directories=(directory,))


def alter(cluster: ReplicaCluster, name: str, path: str, broker_id: int = 1) -> ErrorCode:
    """Ask for a move to a log directory."""
    partition = partition_of(name)
    assert partition is not None
    return cluster.nodes[broker_id].replicas.moves.alter(partition, path)


def moved(cluster: ReplicaCluster, name: str, path: str, timeout_ms: int = 12_000) -> None:
    """Run until the log is in the directory."""
    partition = partition_of(name)
    assert partition is not None
    for _ in range(timeout_ms // 10):
        if cluster.nodes[1].replicas.logs.home_of(partition) == path:
            return
        cluster.run(10)
    raise AssertionError(f"{name} is not in {path}")


def produce(
    cluster: ReplicaCluster,
    topic: Uuid,
    count: int,
    value: bytes = b"v",
    *,
    partition_id: int = 0,
    broker_id: int = 1,
) -> int:
    """Send records one after the other, with acks=1. Return the number of those appended."""
    answers = [
        cluster.produce(broker_id, topic, value, partition_id=partition_id, acks=1)
        for _ in range(count)
    ]
    return sum(bool(each) and each[0].error == ErrorCode.NONE for each in answers)


def contents(cluster: ReplicaCluster, topic: Uuid, partition_id: int = 0) -> list[bytes]:
    """Return the batches of broker 1's log."""
    return cluster.content(1, topic, partition_id)


def future_directories(cluster: ReplicaCluster, path: str, name: str) -> list[str]:
    """Return the names of a partition's future directories in a log directory."""
    names = cluster.nodes[1].disk.list(path)
    return [each for each in names if str(future_partition_of(each)) == name]


def future_log(cluster: ReplicaCluster, topic: Uuid, partition_id: int = 0) -> Log:
    """Return the open future log of broker 1's replica, which is being moved."""
    found = cluster.nodes[1].replicas.moves.future_log((topic, partition_id))
    assert found is not None
    return found[1]
