"""Replication throttles (KIP-73): the rate of replicas outside of the ISR is limited."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from quorate.broker.replication.follower.partition_fetch_state import PartitionFetchState
from quorate.broker.replication.partitions.replication_throttle import (
    ALL_PARTITIONS,
    UNLIMITED,
    throttled_partitions,
)
from quorate.quorum.ids import Uuid
from quorate.quorum.metadata.delta import ImageDelta
from quorate.quorum.metadata.image import TOPIC_RESOURCE
from quorate.quorum.protocol.errors import ErrorCode
from tests.unit.replication.cluster import ReplicaCluster, led_by

MakeCluster = Callable[..., ReplicaCluster]
RECORD_BYTES = 10_000
RECORDS = 300
RATE = 100_000
SIDES = ("leader", "follower")


@pytest.fixture
def cluster(make_cluster: MakeCluster) -> ReplicaCluster:
    """Small fetches, so that the rate has a meaning within seconds."""
    return make_cluster(brokers=2, replica_fetch_max_bytes=2 * RECORD_BYTES)


def limit(cluster: ReplicaCluster, side: str, rate: int) -> None:
    """Set the rate of one side on all brokers."""
    rates = {"leader": UNLIMITED, "follower": UNLIMITED, side: rate}
    for node in cluster.nodes.values():
        node.replicas.limit_replication(rates["leader"], rates["follower"], UNLIMITED)


def filled(cluster: ReplicaCluster, partitions: int = 1) -> Uuid:
    """Return a topic of broker 1 alone, with RECORDS records in each partition."""
    topic = cluster.create("t", [led_by(1)] * partitions)
    cluster.run(50)
    for partition_id in range(partitions):
        for _ in range(RECORDS):
            cluster.produce(1, topic, bytes(RECORD_BYTES), partition_id=partition_id)
    cluster.run(50)
    return topic


def add_replica(cluster: ReplicaCluster, topic: Uuid, partition_id: int = 0) -> None:
    """Broker 2 becomes a replica outside of the ISR."""
    cluster.change(topic, partition_id, replicas=(1, 2), adding=(2,))
    cluster.spread()


def copied(cluster: ReplicaCluster, topic: Uuid, partition_id: int = 0) -> int:
    """Return the bytes that broker 2 has."""
    return cluster.offsets(topic, partition_id).get(2, (0, 0))[0] * RECORD_BYTES


@pytest.mark.parametrize("side", SIDES)
def test_a_new_replica_is_copied_at_the_rate(cluster: ReplicaCluster, side: str) -> None:
    cluster.throttled = {side: ALL_PARTITIONS}
    limit(cluster, side, RATE)
    topic = filled(cluster)
    add_replica(cluster, topic)
    for seconds in range(1, 21):
        cluster.run(1000)
        # One fetch may pass before the rate is known to be exceeded.
        assert copied(cluster, topic) <= RATE * seconds + 2 * RECORD_BYTES
        assert copied(cluster, topic) >= 0.7 * RATE * (seconds - 1)
    assert cluster.hosted(2, topic).in_isr is False
    cluster.run(20_000)
    assert copied(cluster, topic) == RECORDS * RECORD_BYTES
    assert cluster.hosted(2, topic).in_isr, "it has joined"


@pytest.mark.parametrize("side", SIDES)
def test_members_of_the_isr_are_never_held_back(cluster: ReplicaCluster, side: str) -> None:
    cluster.throttled = {side: ALL_PARTITIONS}
    limit(cluster, side, 1)
    topic = cluster.create("t", [led_by(1, 2)])
    cluster.run(50)
    for _ in range(50):
        answers = cluster.produce(1, topic, bytes(RECORD_BYTES))
        cluster.run(20)
        assert [each.error for each in answers] == [ErrorCode.NONE], "acks=all is not delayed"
    replicas = cluster.nodes[1 if side == "leader" else 2].replicas
    throttle = replicas.leader_throttle if side == "leader" else replicas.follower_throttle
    assert throttle.exceeded, "but their records count"
    if side == "follower":  # a new epoch: the follower does not know yet that it lags by nothing
        cluster.change(topic, leader=1)
        cluster.spread()
        cluster.run(20)
        answers = cluster.produce(1, topic)
        cluster.run(20)
        assert [each.error for each in answers] == [ErrorCode.NONE]


@pytest.mark.parametrize("side", SIDES)
def test_only_listed_partitions_are_held_back(cluster: ReplicaCluster, side: str) -> None:
    cluster.throttled = {side: {0}}
    limit(cluster, side, RATE)
    topic = filled(cluster, 2)
    add_replica(cluster, topic, 0)
    add_replica(cluster, topic, 1)
    cluster.run(4000)
    assert copied(cluster, topic, 1) == RECORDS * RECORD_BYTES
    assert copied(cluster, topic, 0) <= 4 * RATE + 2 * RECORD_BYTES


@pytest.mark.parametrize("side", SIDES)
def test_a_higher_rate_counts_immediately(cluster: ReplicaCluster, side: str) -> None:
    cluster.throttled = {side: ALL_PARTITIONS}
    limit(cluster, side, 1)
    topic = filled(cluster)
    add_replica(cluster, topic)
    cluster.run(5000)
    assert copied(cluster, topic) <= 2 * RECORD_BYTES
    limit(cluster, side, UNLIMITED)
    cluster.run(50 if side == "leader" else 550)  # a fetch that waits at the leader comes first
    assert copied(cluster, topic) > 4 * RECORD_BYTES
    cluster.run(2000)
    assert copied(cluster, topic) == RECORDS * RECORD_BYTES


@pytest.mark.parametrize("side", SIDES)
def test_a_list_that_is_removed_ends_the_throttle(cluster: ReplicaCluster, side: str) -> None:
    cluster.throttled = {side: ALL_PARTITIONS}
    limit(cluster, side, 1)
    topic = filled(cluster)
    add_replica(cluster, topic)
    cluster.run(3000)
    cluster.throttled = {}
    for node in cluster.nodes.values():
        node.replicas.apply(cluster.image, ImageDelta(configs=((TOPIC_RESOURCE, "t"),)))
    cluster.run(2000)
    assert copied(cluster, topic) == RECORDS * RECORD_BYTES


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("rate", [0, 10])
def test_a_rate_below_one_batch_makes_progress(
    cluster: ReplicaCluster, side: str, rate: int
) -> None:
    """The windows forget what was read 11 s ago."""
    cluster.throttled = {side: ALL_PARTITIONS}
    limit(cluster, side, rate)
    topic = filled(cluster)
    add_replica(cluster, topic)
    seen = []
    for _ in range(5):
        cluster.run(12_000)
        seen.append(copied(cluster, topic))
    assert seen == sorted(set(seen)), "each period brings some records"
    assert seen[-1] <= 12 * RECORD_BYTES


@pytest.mark.parametrize("side", SIDES)
def test_a_held_partition_does_not_make_the_fetcher_spin(
    cluster: ReplicaCluster, side: str
) -> None:
    """KAFKA-6937: bytes that are held back do not complete a waiting fetch."""
    cluster.throttled = {side: ALL_PARTITIONS}
    limit(cluster, side, 1)
    topic = filled(cluster)
    add_replica(cluster, topic)
    cluster.run(1000)
    before = sum(cluster.fetched_by.values())
    for _ in range(50):
        cluster.produce(1, topic)
        cluster.run(100)
    assert sum(cluster.fetched_by.values()) - before <= 15, "about one each 500 ms"


@pytest.mark.parametrize(
    ("listed", "in_isr", "high_watermark", "held_back"),
    [
        (True, False, 1, True),
        (True, False, 0, False),  # it has reached the leader's high watermark
        (True, False, -1, True),  # KAFKA-15080: not known yet
        (True, True, -1, False),
        (True, True, 1, False),
        (False, False, 1, False),
    ],
)
def test_the_partitions_that_a_follower_holds_back(
    cluster: ReplicaCluster, listed: bool, in_isr: bool, high_watermark: int, held_back: bool
) -> None:
    """KAFKA-15080: a replica with an unknown lag is not held back."""
    topic = cluster.create("t", [led_by(1, 2)])
    cluster.run(50)
    hosted = cluster.hosted(2, topic)
    hosted.follower_throttled, hosted.in_isr = listed, in_isr
    followed = PartitionFetchState(hosted, 0)
    followed.leader_high_watermark = high_watermark
    assert followed.may_be_held_back is held_back


def test_consumers_are_not_throttled(cluster: ReplicaCluster) -> None:
    """KAFKA-13614."""
    cluster.throttled = {"leader": ALL_PARTITIONS}
    limit(cluster, "leader", 1)
    topic = filled(cluster)
    add_replica(cluster, topic)
    cluster.run(2000)
    leader = cluster.nodes[1].replicas.leader_throttle
    assert leader.exceeded
    before = leader.byte_rate
    (read,) = cluster.fetch(1, topic)
    assert len(read.records) > RECORD_BYTES
    assert leader.byte_rate == before, "their bytes do not count"


def test_the_lists_name_the_replicas_of_this_broker() -> None:
    assert throttled_partitions((), 1) == frozenset()
    assert throttled_partitions(("0:1", "3:2", "7:1"), 1) == {0, 7}
    assert 12_345 in throttled_partitions(("*",), 1)


@pytest.mark.parametrize(("windows", "seconds"), [(3, 1), (2, 4)])
def test_the_windows_are_those_of_the_keys(
    make_cluster: MakeCluster, windows: int, seconds: int
) -> None:
    """At the rate 0, one fetch passes in each period of all windows."""
    cluster = make_cluster(
        brokers=2,
        replica_fetch_max_bytes=2 * RECORD_BYTES,
        replication_quota_windows=windows,
        replication_quota_window_seconds=seconds,
    )
    cluster.throttled = {"leader": ALL_PARTITIONS}
    limit(cluster, "leader", 0)
    topic = filled(cluster)
    add_replica(cluster, topic)
    cluster.run(100)
    first = copied(cluster, topic)
    assert first > 0
    cluster.run(windows * seconds * 1000 - 300)
    assert copied(cluster, topic) == first
    cluster.run(900)
    assert copied(cluster, topic) > first
