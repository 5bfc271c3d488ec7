"""Several fetchers for each source broker (num.replica.fetchers)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from quorate.broker.replication.follower import replica_fetcher_manager
from quorate.broker.replication.partitions.fetcher_numbers import (
    MAX_FETCHERS,
    client_id_of,
    fetcher_in,
    fetcher_of,
)
from quorate.quorum.ids import Uuid
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.hot.fetch_request import FetchRequest
from quorate.quorum.seams import Address
from tests.unit.replication.cluster import ReplicaCluster, led_by

MakeCluster = Callable[..., ReplicaCluster]
PARTITIONS = 12


@pytest.mark.parametrize(
    ("topic", "partition", "fetchers", "number"),
    [  # computed by Java
        ("t", 0, 2, 0),
        ("t", 1, 3, 0),
        ("t", 7, 8, 3),
        ("orders", 0, 2, 1),
        ("orders", 1, 3, 1),
        ("orders", 7, 8, 6),
        ("__consumer_offsets", 0, 2, 1),
        ("__consumer_offsets", 1, 3, 1),
        ("__consumer_offsets", 7, 8, 0),
        ("a.long_Topic-name.42", 0, 2, 1),
        ("a.long_Topic-name.42", 1, 3, 2),
        ("a.long_Topic-name.42", 7, 8, 2),
        ("polygenelubricants", 0, 2, 0),
        ("polygenelubricants", 1, 3, 1),
        ("polygenelubricants", 7, 8, 1),
    ],
)
def test_partitions_belong_to_the_fetchers_of_kafka(
    topic: str, partition: int, fetchers: int, number: int
) -> None:
    assert fetcher_of(topic, partition, fetchers) == number
    assert fetcher_of(topic, partition, 1) == 0


def test_client_ids_name_the_fetcher() -> None:
    assert client_id_of(3, 7) == "broker-3-fetcher-7"
    assert [fetcher_in(client_id_of(3, each)) for each in (0, 7, 1023)] == [0, 7, 1023]
    assert fetcher_in(None) == fetcher_in("broker-3-fetcher") == 0
    assert fetcher_in(client_id_of(3, MAX_FETCHERS)) is None
    assert fetcher_in("x-" + "9" * 5000) is None


def make(make_cluster: MakeCluster, fetchers: int) -> tuple[ReplicaCluster, Uuid]:
    cluster = make_cluster(brokers=2, num_replica_fetchers=fetchers)
    topic = cluster.create("t", [led_by(1, 2)] * PARTITIONS)
    cluster.run(200)
    return cluster, topic


def produce_to_all(cluster: ReplicaCluster, topic: Uuid) -> None:
    for index in range(PARTITIONS):
        cluster.produce(1, topic, partition_id=index)


def behind(cluster: ReplicaCluster, topic: Uuid) -> set[int]:
    """Return the partitions whose follower lacks records of the leader."""
    return {
        index
        for index in range(PARTITIONS)
        if len({end for end, _ in cluster.offsets(topic, index).values()}) > 1
    }


def test_a_fetcher_that_waits_delays_only_its_own_partitions(make_cluster: MakeCluster) -> None:
    cluster, topic = make(make_cluster, 3)
    slow = {index for index in range(PARTITIONS) if fetcher_of("t", index, 3) == 1}
    assert 0 < len(slow) < PARTITIONS
    cluster.unanswered = {client_id_of(2, 1)}
    cluster.run(600)  # the fetch that was parked is answered
    produce_to_all(cluster, topic)
    cluster.run(100)
    assert behind(cluster, topic) == slow


def test_a_leader_that_answers_late_is_logged_once_in_an_interval(
    make_cluster: MakeCluster, caplog: pytest.LogCaptureFixture
) -> None:
    """Links that became slow are found in the followers' logs, and a quiet topic logs nothing."""

    def late() -> list[str]:
        return [each for each in caplog.messages if " answered a fetch after " in each]

    cluster, _ = make(make_cluster, 1)
    cluster.run(3_000)
    assert late() == []
    cluster.network.shape("b1", "b2", min_latency_ms=1_000, max_latency_ms=1_000)
    cluster.run(8_000)
    (line,) = late()
    assert line.startswith("broker 1 answered a fetch after ")


def test_each_fetcher_has_its_own_session(make_cluster: MakeCluster) -> None:
    cluster, topic = make(make_cluster, 3)
    assert {each for each in cluster.fetched_by if cluster.fetched_by[each]} == {
        client_id_of(2, number) for number in range(3)
    }
    assert len(cluster.nodes[1].replicas.session_cache) == 3
    cluster.run(200)
    before = sum(cluster.fetched_by.values())
    produce_to_all(cluster, topic)
    cluster.run(300)
    assert not behind(cluster, topic)
    assert sum(cluster.fetched_by.values()) - before < 20, "no session replaces another"


@pytest.mark.parametrize(("before", "after"), [(1, 4), (4, 2), (3, 1)])
def test_partitions_move_when_the_number_changes(
    make_cluster: MakeCluster, before: int, after: int
) -> None:
    cluster, topic = make(make_cluster, before)
    produce_to_all(cluster, topic)
    cluster.run(20)
    fetchers = cluster.nodes[2].replicas.fetchers
    fetchers.resize(after)
    produce_to_all(cluster, topic)
    cluster.run(700)
    assert not behind(cluster, topic)
    assert len(fetchers) == after
    cluster.fetched_by.clear()
    cluster.run(2000)
    assert set(cluster.fetched_by) == {client_id_of(2, number) for number in range(after)}
    assert len(list(fetchers.lags())) == PARTITIONS


def test_a_leader_may_move_while_partitions_move_between_fetchers(
    make_cluster: MakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fetchers of the old address close before all of their partitions have moved."""
    monkeypatch.setattr(replica_fetcher_manager, "MOVED_PER_SLICE", 2)
    cluster, topic = make(make_cluster, 1)
    fetchers = cluster.nodes[2].replicas.fetchers
    fetchers.resize(5)
    for fetcher in list(fetchers._fetchers.values()):
        fetcher.address = Address("10.9.9.9", 1)
    fetchers.metadata_applied()
    produce_to_all(cluster, topic)
    cluster.run(700)
    assert not behind(cluster, topic)
    assert len(list(fetchers.lags())) == PARTITIONS


def test_the_number_of_sessions_of_a_follower_is_bounded(make_cluster: MakeCluster) -> None:
    cluster, _ = make(make_cluster, 1)
    errors: list[int] = []
    request = FetchRequest(2, 2, 0, 0, 1, 0, 0, 0, [], [], "")
    cluster.nodes[1].replicas.replica_sessions.fetch(
        request, lambda error, *_: errors.append(error), client_id_of(2, MAX_FETCHERS)
    )
    assert errors == [ErrorCode.INVALID_REQUEST]
