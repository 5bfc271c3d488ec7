"""Produce, fetch, replication and failover of replica managers over a simulated network."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from quorate.broker.partition.settings import PartitionSettings
from quorate.broker.replication.fetches.consumer_fetches import Fetch
from quorate.broker.replication.partitions.replica_configuration import CONFIGURED_PER_SLICE
from quorate.quorum.ids import Uuid
from quorate.quorum.log.batches.batch import build_batch
from quorate.quorum.log.batches.record import Record
from quorate.quorum.log.files.settings import LogSettings
from quorate.quorum.metadata.delta import ImageDelta
from quorate.quorum.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.hot import FetchPartition, FetchPartitionResult
from tests.unit.replication.cluster import ReplicaCluster, led_by, topic_uuid

MakeCluster = Callable[..., ReplicaCluster]


@pytest.fixture
def cluster(make_cluster: MakeCluster) -> ReplicaCluster:
    return make_cluster()


def test_acks_all_waits_for_the_isr(cluster: ReplicaCluster) -> None:
    topic = cluster.create("t", [led_by(1, 2, 3)])
    cluster.run(50)
    answers = cluster.produce(1, topic)
    assert not answers
    cluster.run(20)
    assert [each.error for each in answers] == [0]
    assert answers[0].base_offset == 0
    assert {end for end, _ in cluster.offsets(topic).values()} == {1}
    assert cluster.content(1, topic) == cluster.content(2, topic) == cluster.content(3, topic)


def produced(cluster: ReplicaCluster, broker: int, topic: Uuid, count: int = 1) -> None:
    answers = [cluster.produce(broker, topic, b"v%d" % index) for index in range(count)]
    cluster.run(50)
    assert [each[0].error for each in answers] == [0] * count


def test_acks_1_and_0_do_not_wait(cluster: ReplicaCluster) -> None:
    topic = cluster.create("t", [led_by(1, 2, 3)])
    cluster.run(50)
    assert cluster.produce(1, topic, acks=1)[0].error == 0
    assert cluster.produce(1, topic, acks=0)[0].error == 0
    assert cluster.produce(1, topic, acks=2)[0].error == ErrorCode.INVALID_REQUIRED_ACKS


def test_produce_to_a_follower_names_the_leader(cluster: ReplicaCluster) -> None:
    topic = cluster.create("t", [led_by(1, 2, 3)])
    cluster.run(50)
    (answer,) = cluster.produce(2, topic)
    assert answer.error == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert answer.leader == (1, 0)


def test_produce_to_what_is_not_there(cluster: ReplicaCluster) -> None:
    topic = cluster.create("t", [led_by(1, 2)])
    cluster.run(50)
    assert cluster.produce(3, topic)[0].error == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (
        cluster.produce(1, topic, partition_id=7)[0].error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    )
    assert cluster.produce(1, topic_uuid(5))[0].error == ErrorCode.UNKNOWN_TOPIC_ID


def test_produce_times_out_when_the_isr_is_silent(cluster: ReplicaCluster) -> None:
    topic = cluster.create("t", [led_by(1, 2, 3)])
    cluster.run(50)
    cluster.network.isolate("b2")
    answers = cluster.produce(1, topic, timeout_ms=300)
    cluster.run(250)
    assert not answers
    cluster.run(100)
    assert answers[0].error == ErrorCode.REQUEST_TIMED_OUT
    cluster.network.heal()
    cluster.run(500)
    assert len(answers) == 1, "answered once"


def test_r56_isr_of_one_below_min_isr_refuses_acks_all(cluster: ReplicaCluster) -> None:
    cluster.partition_settings = PartitionSettings(min_insync_replicas=2)
    topic = cluster.create("t", [led_by(1, 2, 3, isr=(1,))])
    cluster.kill(2)
    cluster.kill(3)
    cluster.run(50)
    assert cluster.produce(1, topic)[0].error == ErrorCode.NOT_ENOUGH_REPLICAS
    assert cluster.offsets(topic) == {1: (0, 0)}


def test_partitions_of_a_topic_share_their_settings(make_cluster: MakeCluster) -> None:
    """If the settings were made for each partition, one config change would stop a broker with
    thousands of partitions for a while."""
    cluster = make_cluster(brokers=1)
    topics = {name: cluster.create(name, [led_by(1)] * 3) for name in ("t", "u")}
    cluster.run(50)
    applied = cluster.nodes[1].replicas.apply
    for resources, made in (
        # Once for both uses: before the roles, for a higher min.insync.replicas, and after them.
        (((TOPIC_RESOURCE, "t"),), ["t"]),
        (((TOPIC_RESOURCE, "t"), (TOPIC_RESOURCE, "u"), (TOPIC_RESOURCE, "gone")), ["t", "u"]),
        # The settings of the node follow in slices.
        (((BROKER_RESOURCE, ""),), ["t", "u"]),
    ):
        cluster.settings_made.clear()
        cluster.log_settings = LogSettings(segment_bytes=1 << 20 + len(resources))
        applied(cluster.image, ImageDelta(configs=resources))
        cluster.run(50)
        # The settings without a topic show whether the node's part has changed.
        assert sorted(filter(None, cluster.settings_made)) == made
        for name in made:
            for partition_id in range(3):
                hosted = cluster.hosted(1, topics[name], partition_id)
                assert hosted.log.settings is cluster.log_settings


def test_settings_of_the_node_reach_many_partitions_in_slices(make_cluster: MakeCluster) -> None:
    """A change for thousands of partitions in one step would stop the event loop for too long. A
    higher min.insync.replicas may not wait: a leader would commit with the old value."""
    cluster = make_cluster(brokers=1)
    topic = cluster.create("t", [led_by(1)] * (CONFIGURED_PER_SLICE + 50))
    cluster.run(100)
    hosted = [cluster.hosted(1, topic, each) for each in range(CONFIGURED_PER_SLICE + 50)]
    cluster.log_settings = LogSettings(segment_bytes=1 << 21)
    cluster.partition_settings = PartitionSettings(min_insync_replicas=2)
    delta = ImageDelta(configs=((BROKER_RESOURCE, ""),))
    cluster.nodes[1].replicas.apply(cluster.image, delta)
    assert all(each.partition.settings.min_insync_replicas == 2 for each in hosted)
    done = [each.log.settings is cluster.log_settings for each in hosted]
    assert not any(done)
    cluster.nodes[1].replicas._applier._slice()
    done = [each.log.settings is cluster.log_settings for each in hosted]
    assert sum(done) == CONFIGURED_PER_SLICE
    cluster.run(50)
    assert all(each.log.settings is cluster.log_settings for each in hosted)
    cluster.partition_settings = PartitionSettings(min_insync_replicas=1)
    cluster.nodes[1].replicas.apply(cluster.image, delta)
    cluster.run(50)
    assert all(each.partition.settings.min_insync_replicas == 1 for each in hosted)


def test_isr_falls_below_min_isr_after_the_append(cluster: ReplicaCluster) -> None:
    cluster.partition_settings = PartitionSettings(min_insync_replicas=2)
    topic = cluster.create("t", [led_by(1, 2, 3)])
    cluster.run(50)
    produced(cluster, 1, topic)
    cluster.network.isolate("b3")
    cluster.network.isolate("b2")
    answers = cluster.produce(1, topic)
    cluster.change(topic, isr=(1,))
    cluster.spread()
    cluster.run(50)
    assert not answers, "the high watermark stands still below min ISR (KIP-966)"
    cluster.change(topic, isr=(1, 2))
    cluster.spread()
    cluster.network.heal()
    cluster.run(3000)
    assert answers[0].error == 0


def test_leader_change_fails_those_who_wait(cluster: ReplicaCluster) -> None:
    topic = cluster.create("t", [led_by(1, 2, 3)])
    cluster.run(50)
    cluster.network.isolate("b2")
    answers = cluster.produce(1, topic)
    cluster.change(topic, leader=3, isr=(3, 1))
    cluster.spread()
    cluster.run(20)
    assert answers[0].error == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_r60_consumers_see_nothing_above_the_high_watermark(cluster: ReplicaCluster) -> None:
    topic = cluster.create("t", [led_by(1, 2, 3)])
    cluster.run(50)
    cluster.network.isolate("b2")
    cluster.produce(1, topic)
    cluster.run(50)
    (fetched,) = cluster.fetch(1, topic)
    assert (fetched.error, len(fetched.records), fetched.high_watermark) == (0, 0, 0)
    (debugged,) = cluster.fetch(1, topic, replica_id=-2)
    assert len(debugged.records) > 0, "verification tools read to the log end"


def test_parked_consumer_is_woken_by_the_high_watermark(cluster: ReplicaCluster) -> None:
    topic = cluster.create("t", [led_by(1, 2, 3)])
    cluster.run(50)
    answers = cluster.fetch(1, topic, max_wait_ms=10_000)
    cluster.run(1000)
    assert not answers
    cluster.produce(1, topic)
    cluster.run(20)
    assert len(answers[0].records) > 0


def test_parked_consumer_is_answered_in_time_or_when_leadership_goes(
    cluster: ReplicaCluster,
) -> None:
    topic = cluster.create("t", [led_by(1, 2, 3)])
    cluster.run(50)
    timed_out = cluster.fetch(1, topic, max_wait_ms=100)
    waiting = cluster.fetch(1, topic, max_wait_ms=100_000)
    hungry = cluster.fetch(1, topic, max_wait_ms=100_000, min_bytes=200)
    cluster.run(150)
    assert len(timed_out) == 1
    assert not timed_out[0].records
    cluster.produce(1, topic)
    cluster.run(20)
    assert len(waiting) == 1
    assert not hungry
    cluster.change(topic, leader=2)
    cluster.spread()
    cluster.run(20)
    assert hungry[0].error == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert hungry[0].leader == (2, 1)


def test_min_bytes_counts_what_becomes_visible(cluster: ReplicaCluster) -> None:
    """Records that were appended before the fetch, and committed after it, count too."""
    topic = cluster.create("t", [led_by(1, 2, 3)])
    cluster.run(50)
    cluster.produce(1, topic)
    one = cluster.fetch(1, topic, max_wait_ms=60_000)
    size = len(cluster.content(1, topic)[0])
    three = cluster.fetch(1, topic, max_wait_ms=60_000, min_bytes=3 * size)
    assert not one
    cluster.run(20)
    assert len(one) == 1
    assert not three
    for _ in range(2):
        cluster.produce(1, topic)
        cluster.run(20)
    assert len(three[0].records) == 3 * size


@pytest.mark.parametrize("limit", ["partition", "segment"])
def test_a_fetch_that_cannot_grow_does_not_wait(cluster: ReplicaCluster, limit: str) -> None:
    """A consumer with fetch.min.bytes=max.partition.fetch.bytes waited for the rest of a batch that
    does not fit, up to its maximum wait, although the log had more. So it did at the end of each
    segment."""
    size = len(build_batch([Record(0, 1, None, bytes(1000))], leader_epoch=0))
    if limit == "segment":
        cluster.log_settings = replace(cluster.log_settings, segment_bytes=3 * size)
    topic = cluster.create("t", [led_by(1)])
    cluster.run(20)
    for _ in range(10):
        cluster.produce(1, topic, bytes(1000))
    answers: list[FetchPartitionResult] = []
    most = 3 * size + 500 if limit == "partition" else 1 << 20
    wanted = FetchPartition("", topic, 0, 0, most)
    fetch = Fetch(partitions=[wanted], max_wait_ms=500, min_bytes=3 * size + 500, max_bytes=1 << 20)
    cluster.nodes[1].replicas.consumer_fetches.fetch(fetch, answers.extend)
    assert [len(each.records) for each in answers] == [3 * size]


def test_one_partition_has_no_more_than_the_whole_answer_may(cluster: ReplicaCluster) -> None:
    """Once, a partition was read up to its own limit, whatever fetch.max.bytes said: a whole
    segment in one step."""
    topic = cluster.create("t", [led_by(1)])
    cluster.run(20)
    for _ in range(10):
        cluster.produce(1, topic, bytes(1000))
    size = len(cluster.content(1, topic)[0])
    limits = ((3 * size, 1 << 30, 3), (1, 1 << 30, 1), (0, 1 << 30, 1), (1 << 30, 0, 1), (0, 0, 1))
    for max_bytes, of_partition, batches in limits:
        answers: list[FetchPartitionResult] = []
        wanted = FetchPartition("", topic, 0, 0, of_partition)
        fetch = Fetch(partitions=[wanted], max_wait_ms=0, min_bytes=1, max_bytes=max_bytes)
        cluster.nodes[1].replicas.consumer_fetches.fetch(fetch, answers.extend)
        assert len(answers[0].records) == batches * size, (max_bytes, of_partition)


def test_r58_epochs_of_fetchers(cluster: ReplicaCluster) -> None:
    """Stale metadata led fetchers to the wrong leader (KIP-320; R58 in tests/scenarios)."""
    topic = cluster.create("t", [led_by(1, 2, 3)])
    cluster.change(topic, leader=1)
    cluster.spread()
    cluster.run(50)
    assert cluster.fetch(1, topic, leader_epoch=0)[0].error == ErrorCode.FENCED_LEADER_EPOCH
    assert cluster.fetch(1, topic, leader_epoch=2)[0].error == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert cluster.fetch(1, topic, leader_epoch=1)[0].error == 0
    assert cluster.fetch(1, topic, 5)[0].error == ErrorCode.OFFSET_OUT_OF_RANGE


def test_failover_loses_nothing_acknowledged(cluster: ReplicaCluster) -> None:
    topic = cluster.create("t", [led_by(1, 2, 3)])
    cluster.run(50)
    produced(cluster, 1, topic, 5)
    disk = cluster.kill(1)
    cluster.change(topic, leader=2, isr=(2, 3))
    cluster.spread()
    cluster.run(50)
    produced(cluster, 2, topic, 3)
    assert cluster.offsets(topic)[2] == (8, 8)
    assert cluster.offsets(topic)[3][0] == 8
    cluster.start(1, disk)
    cluster.run(200)
    assert cluster.content(1, topic) == cluster.content(2, topic)
    assert cluster.image.topics[topic].partitions[0].isr == (2, 3, 1)


def test_r53_returning_leader_cuts_its_unacknowledged_tail(cluster: ReplicaCluster) -> None:
    """The former leader truncates by epochs (KIP-101): it removes the records that it appended
    alone, and keeps all committed ones."""
    topic = cluster.create("t", [led_by(1, 2, 3)])
    cluster.run(50)
    produced(cluster, 1, topic, 2)
    cluster.network.isolate("b1")
    cluster.produce(1, topic, b"lost", acks=1)
    cluster.run(10)
    cluster.change(topic, leader=2, isr=(2, 3))
    cluster.spread(2, 3)
    cluster.run(50)
    produced(cluster, 2, topic, 1)
    cluster.network.heal()
    cluster.spread()
    cluster.run(3000)
    contents = [cluster.content(each, topic) for each in (1, 2, 3)]
    assert contents[0] == contents[1] == contents[2]
    assert len(contents[0]) == 3


def test_r57_zombie_leader_cannot_commit(make_cluster: MakeCluster) -> None:
    """The leader of epoch 0 is cut off and continues to append. The controller refuses its late ISR
    change (R57 in tests/scenarios)."""
    cluster = make_cluster(replica_lag_time_max_ms=1000)
    topic = cluster.create("t", [led_by(1, 2, 3)])
    cluster.run(50)
    cluster.network.isolate("b1")
    cluster.change(topic, leader=2, isr=(2, 3))
    cluster.spread(2, 3)
    answers = cluster.produce(1, topic)
    zombie = cluster.nodes.pop(1)  # no metadata reaches it
    cluster.run(5000)
    cluster.nodes[1] = zombie
    assert not answers
    assert cluster.offsets(topic)[1] == (1, 0)


def test_leader_parks_followers_whose_epoch_it_has_not_replayed(cluster: ReplicaCluster) -> None:
    """An error would cost each follower its backoff of a second."""
    topic = cluster.create("t", [led_by(1, 2, 3)])
    cluster.run(50)
    cluster.change(topic, leader=2)
    cluster.spread(1, 3)
    cluster.run(100)
    cluster.spread(2)
    cluster.run(10)
    answers = cluster.produce(2, topic)
    cluster.run(20)
    assert answers and answers[0].error == 0


def test_new_partition_is_fetched_before_its_leader_has_opened_it(cluster: ReplicaCluster) -> None:
    cluster.nodes[1].host.pause()
    topic = cluster.create("t", [led_by(1, 2, 3)])
    cluster.run(300)
    cluster.nodes[1].host.resume()
    cluster.run(30)
    produced(cluster, 1, topic)


def test_metadata_ends_backoffs(cluster: ReplicaCluster) -> None:
    topic = cluster.create("t", [led_by(1, 2, 3)])
    cluster.run(50)
    cluster.network.crash(cluster.nodes[1].host)
    node = cluster.nodes.pop(1)
    cluster.run(5000)
    cluster.start(1, node.disk.restart())
    cluster.run(100)
    produced(cluster, 1, topic)


def test_two_thousand_records_over_many_partitions(cluster: ReplicaCluster) -> None:
    topic = cluster.create("t", [led_by(1 + i % 3, 1 + (i + 1) % 3) for i in range(40)])
    cluster.run(100)
    answers = [
        cluster.produce(1 + index % 40 % 3, topic, partition_id=index % 40, value=b"x" * 100)
        for index in range(2000)
    ]
    cluster.run(500)
    assert all(len(each) == 1 and each[0].error == 0 for each in answers)
    for index in range(40):
        leader, follower = 1 + index % 3, 1 + (index + 1) % 3
        assert cluster.content(leader, topic, index) == cluster.content(follower, topic, index)
