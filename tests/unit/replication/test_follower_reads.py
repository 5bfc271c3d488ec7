"""Consumers that read from followers (KIP-392)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from quorate.broker.partition.replica_selectors import LEAST_LOADED, RACK_AWARE
from quorate.broker.replication.fetches.read_replicas import Reader
from quorate.broker.replication.fetches.reading import DEBUGGING_CONSUMER
from quorate.quorum.ids import Uuid
from quorate.quorum.log.batches.batch import batches
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.hot import FetchPartition, FetchPartitionResult, FetchRequest
from tests.unit.replication.cluster import LISTENER, ReplicaCluster, led_by

MakeCluster = Callable[..., ReplicaCluster]
RACKS = {1: "a", 2: "b", 3: "c"}


@pytest.fixture
def cluster(make_cluster: MakeCluster) -> ReplicaCluster:
    return make_cluster(racks=RACKS, replica_selector=RACK_AWARE)


def topic_with_records(cluster: ReplicaCluster, count: int = 1) -> Uuid:
    """Return a topic led by 1 whose records all replicas know to be committed."""
    topic = cluster.create("t", [led_by(1, 2, 3)])
    cluster.run(50)
    for _ in range(count):
        cluster.produce(1, topic)
    cluster.run(1200)
    assert set(cluster.offsets(topic).values()) == {(count, count)}
    return topic


def offsets_of(result: FetchPartitionResult) -> list[int]:
    return [header.base_offset for _, header in batches(result.records)]


def test_the_leader_names_the_replica_in_the_consumers_rack(cluster: ReplicaCluster) -> None:
    topic = topic_with_records(cluster)
    (sent_away,) = cluster.fetch(1, topic, rack="b", max_wait_ms=5000)
    assert sent_away.preferred_read_replica == 2
    assert sent_away.error == ErrorCode.NONE
    assert not len(sent_away.records), "KAFKA-13767: what another replica serves is not read"
    assert (sent_away.high_watermark, sent_away.log_start_offset) == (1, 0)
    (read,) = cluster.fetch(2, topic, rack="b")
    assert offsets_of(read) == [0]
    assert read.preferred_read_replica == -1
    for rack in ("", "a", "elsewhere", None):
        (read,) = cluster.fetch(1, topic, rack=rack)
        assert offsets_of(read) == [0], rack
        assert read.preferred_read_replica == -1


def test_a_verification_tool_is_not_sent_away(cluster: ReplicaCluster) -> None:
    topic = topic_with_records(cluster)
    (read,) = cluster.fetch(1, topic, rack="b", replica_id=DEBUGGING_CONSUMER)
    assert read.preferred_read_replica == -1
    assert offsets_of(read) == [0]


def test_without_a_selector_the_leader_is_read(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(racks=RACKS)
    topic = topic_with_records(cluster)
    assert offsets_of(cluster.fetch(1, topic, rack="b")[0]) == [0]
    assert offsets_of(cluster.fetch(2, topic, rack="b")[0]) == [0], "as any follower in Kafka"


def test_a_fenced_replica_is_not_named(cluster: ReplicaCluster) -> None:
    """KAFKA-15390."""
    topic = topic_with_records(cluster)
    fenced = replace(cluster.image.brokers[2], fenced=True)
    cluster.image = cluster.image._replace(brokers=cluster.image.brokers.insert(2, fenced))
    cluster.spread(1)
    cluster.run(10)
    (read,) = cluster.fetch(1, topic, rack="b")
    assert read.preferred_read_replica == -1
    assert offsets_of(read) == [0]


def test_readers_are_spread_over_the_least_loaded(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(racks=RACKS, replica_selector=LEAST_LOADED)
    topic = topic_with_records(cluster)
    chosen = [cluster.fetch(1, topic, rack="")[0].preferred_read_replica for _ in range(10)]
    assert sorted(chosen) == [2] * 5 + [3] * 5
    named = [cluster.fetch(1, topic, rack="c")[0].preferred_read_replica for _ in range(4)]
    assert named == [3] * 4
    cluster.run(700_000)  # two periods later the readers are no longer counted
    chosen = [cluster.fetch(1, topic, rack="")[0].preferred_read_replica for _ in range(4)]
    assert sorted(chosen) == [2, 2, 3, 3]


def test_requests_before_version_11_are_sent_to_the_leader(cluster: ReplicaCluster) -> None:
    """KAFKA-9004: an old client cannot be told to read elsewhere, so it must not begin to."""
    topic = topic_with_records(cluster)
    (refused,) = cluster.fetch(2, topic)
    assert refused.error == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert refused.leader == (1, 0)


def test_a_follower_never_sends_a_consumer_away(cluster: ReplicaCluster) -> None:
    """KAFKA-13778."""
    topic = topic_with_records(cluster)
    (read,) = cluster.fetch(2, topic, rack="c")
    assert read.preferred_read_replica == -1
    assert offsets_of(read) == [0]


def test_a_follower_serves_below_its_own_high_watermark_only(cluster: ReplicaCluster) -> None:
    topic = topic_with_records(cluster)
    cluster.network.isolate("b3")
    cluster.produce(1, topic)
    cluster.run(700)
    hosted = cluster.hosted(2, topic)
    assert (hosted.log.end_offset, hosted.partition.high_watermark) == (2, 1)
    (read,) = cluster.fetch(2, topic, rack="b")
    assert offsets_of(read) == [0], "record 1 is in the log of 2, but not committed"
    (uncommitted,) = cluster.fetch(2, topic, 2, rack="b")
    assert (uncommitted.error, len(uncommitted.records)) == (ErrorCode.NONE, 0)
    (above,) = cluster.fetch(2, topic, 3, rack="b")
    assert above.error == ErrorCode.OFFSET_OUT_OF_RANGE
    cluster.network.heal()


def test_a_follower_refuses_other_leader_epochs(cluster: ReplicaCluster) -> None:
    topic = topic_with_records(cluster)
    cluster.change(topic, leader=3)
    cluster.spread()
    cluster.run(50)
    errors = [cluster.fetch(2, topic, rack="b", leader_epoch=epoch)[0] for epoch in (0, 1, 2)]
    assert [each.error for each in errors] == [
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
    ]
    assert errors[0].leader == (3, 1)


def test_a_follower_refuses_offsets_below_its_log_start(cluster: ReplicaCluster) -> None:
    topic = topic_with_records(cluster, 3)
    cluster.hosted(2, topic).log.advance_start(2)
    assert cluster.fetch(2, topic, 1, rack="b")[0].error == ErrorCode.OFFSET_OUT_OF_RANGE
    assert cluster.fetch(1, topic, 1, rack="b")[0].preferred_read_replica == 2, "until it fetches"


def test_a_raised_high_watermark_ends_the_wait_at_the_follower(cluster: ReplicaCluster) -> None:
    """KAFKA-14334. The leader sends the high watermark immediately once a consumer reads there."""
    topic = topic_with_records(cluster)
    assert cluster.fetch(1, topic, 1, rack="b")[0].preferred_read_replica == 2
    for offset in range(1, 6):
        waiting = cluster.fetch(2, topic, offset, rack="b", max_wait_ms=30_000)
        cluster.run(5)
        assert not waiting
        cluster.produce(1, topic)
        cluster.run(30)  # a few network delays, not replica.fetch.wait.max.ms
        assert [offsets_of(each) for each in waiting] == [[offset]]
    assert cluster.offsets(topic)[2] == (6, 6)


def test_the_first_reader_brings_the_high_watermark_along(cluster: ReplicaCluster) -> None:
    topic = topic_with_records(cluster)
    cluster.produce(1, topic)
    cluster.run(30)
    assert cluster.offsets(topic)[2] == (2, 1)
    cluster.fetch(1, topic, 1, rack="b")
    cluster.run(30)
    assert cluster.offsets(topic)[2] == (2, 2)
    assert cluster.offsets(topic)[3] == (2, 1), "nobody reads there"


def test_without_readers_no_fetch_is_answered_for_the_high_watermark(
    cluster: ReplicaCluster,
) -> None:
    """KAFKA-9952: an answer for each high watermark would double the fetches of all followers."""
    topic = topic_with_records(cluster)
    cluster.produce(1, topic)
    cluster.run(30)
    assert cluster.offsets(topic)[2] == (2, 1)
    assert cluster.fetch(1, topic, 1, rack="b")[0].preferred_read_replica == 2
    cluster.run(11 * 60_000)
    cluster.produce(1, topic)
    cluster.run(30)
    assert cluster.offsets(topic)[2] == (3, 2), "the consumer has not asked again for 10 minutes"


def test_a_reader_of_a_deleted_partition_is_answered(cluster: ReplicaCluster) -> None:
    """KAFKA-15218."""
    topic = topic_with_records(cluster)
    waiting = cluster.fetch(2, topic, 1, rack="b", max_wait_ms=30_000)
    cluster.delete("t")
    cluster.run(50)
    assert [each.error for each in waiting] == [ErrorCode.UNKNOWN_TOPIC_ID]


def test_a_reader_learns_that_its_follower_leads_now(cluster: ReplicaCluster) -> None:
    topic = topic_with_records(cluster)
    waiting = cluster.fetch(2, topic, 1, rack="b", max_wait_ms=30_000, leader_epoch=0)
    cluster.change(topic, leader=2)
    cluster.spread()
    cluster.run(50)
    assert [each.error for each in waiting] == [ErrorCode.FENCED_LEADER_EPOCH]


def test_a_session_repeats_the_choice(cluster: ReplicaCluster) -> None:
    """KAFKA-14379: a client that refreshes its choice is answered again. The high watermark has not
    moved since the last answer, but the choice must be sent."""
    topic = topic_with_records(cluster)
    answers: list[tuple[int, int, list[FetchPartitionResult]]] = []

    def fetch(session_id: int, epoch: int) -> tuple[int, int, list[FetchPartitionResult]]:
        wanted = [FetchPartition("", topic, 0, 0, 1 << 20)] if not epoch else []
        cluster.nodes[1].replicas.fetch_as_consumer(
            FetchRequest(-1, -1, 5000, 1, 1 << 20, 0, session_id, epoch, wanted, [], "b"),
            1 << 20,
            lambda error, session_id, results: answers.append((error, session_id, list(results))),
            uses_topic_ids=True,
            reader=Reader("b", LISTENER),
        )
        return answers.pop()

    _, session_id, first = fetch(0, 0)
    _, _, second = fetch(session_id, 1)
    assert session_id
    for (result,) in (first, second):
        assert (result.preferred_read_replica, len(result.records)) == (2, 0)
