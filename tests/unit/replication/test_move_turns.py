"""The turns of moves between log directories, and the metrics of moves."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from quorate.broker.metrics.replicas import of_moves
from quorate.broker.replication.directories import replica_moves
from tests.unit.replication.cluster import ReplicaCluster
from tests.unit.replication.moves import (
    A,
    B,
    alter,
    committed,
    future_log,
    moved,
    placed_in,
    produce,
)


@pytest.fixture
def cluster(make_cluster: Callable[..., ReplicaCluster]) -> ReplicaCluster:
    made = make_cluster(brokers=1, log_dirs=(A, B), file_delete_delay_ms=100)
    committed(made)
    return made


def test_a_move_that_waits_for_the_controller_lets_the_next_one_copy(
    cluster: ReplicaCluster,
) -> None:
    reports: list[int] = []
    cluster.on_assigned = lambda broker_id, key, directory, accepted: reports.append(key[1])
    topic = cluster.create("t", [placed_in(cluster, A)] * 3)
    cluster.run(50)
    for index in range(3):
        produce(cluster, topic, 2, partition_id=index)
        alter(cluster, f"t-{index}", B)
    cluster.run(2000)
    assert reports == [0, 1, 2]
    assert stages(cluster) == {"opening": 0, "waiting": 0, "copying": 0, "assigning": 3}
    for index in range(3):
        produce(cluster, topic, 1, partition_id=index)
    cluster.run(500)
    assert [future_log(cluster, topic, index).end_offset for index in range(3)] == [3, 3, 3]


def test_few_moves_wait_for_the_controller_at_one_time(
    cluster: ReplicaCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of them looks for new records ten times a second."""
    monkeypatch.setattr(replica_moves, "MAX_ASSIGNING", 1)
    reports: list[int] = []
    cluster.on_assigned = lambda broker_id, key, directory, accepted: reports.append(key[1])
    topic = cluster.create("t", [placed_in(cluster, A)] * 3)
    cluster.run(50)
    for index in range(3):
        produce(cluster, topic, 2, partition_id=index)
        alter(cluster, f"t-{index}", B)
    cluster.run(2000)
    assert reports == [0, 1]
    assert stages(cluster) == {"opening": 0, "waiting": 1, "copying": 1, "assigning": 1}
    alter(cluster, "t-0", A)
    cluster.run(2000)
    assert reports == [0, 1, 0, 2]


def stages(cluster: ReplicaCluster) -> dict[str, int]:
    return cluster.nodes[1].replicas.moves.stages()


def test_the_metrics_of_moves(cluster: ReplicaCluster) -> None:
    topic = cluster.create("t", [placed_in(cluster, A)] * 2)
    cluster.run(50)
    moves = cluster.nodes[1].replicas.moves
    for index in range(2):
        produce(cluster, topic, 7, partition_id=index)
        alter(cluster, f"t-{index}", B)
    assert (moves.max_lag, moves.moved, moves.copied_bytes) == (7, 0, 0)
    for index in range(2):
        moved(cluster, f"t-{index}", B)
    size = cluster.hosted(1, topic).log.size_bytes
    assert (moves.max_lag, moves.moved, moves.failed) == (0, 2, 0)
    assert moves.copied_bytes == 2 * size
    sums = {
        (sample.name, *sample.labels.values()): sample.value
        for family in of_moves(moves)
        for sample in family.samples
    }
    assert sums["quorate_replica_moves_ended_total", "moved"] == 2
    assert sums["quorate_replica_moves_copied_bytes_total",] == 2 * size
    assert sums["quorate_replica_moves", "copying"] == 0


def test_one_move_copies_at_a_time(
    cluster: ReplicaCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replica_moves, "MAX_ASSIGNING", 0)
    reports: list[int] = []
    cluster.on_assigned = lambda broker_id, key, directory, accepted: reports.append(key[1])
    topic = cluster.create("t", [placed_in(cluster, A)] * 3)
    cluster.run(50)
    for index in range(3):
        produce(cluster, topic, 2, partition_id=index)
        alter(cluster, f"t-{index}", B)
    cluster.run(2000)
    assert reports == [0]
    assert [future_log(cluster, topic, index).end_offset for index in range(3)] == [2, 0, 0]
    alter(cluster, "t-0", A)
    cluster.run(2000)
    assert reports == [0, 0, 1]
