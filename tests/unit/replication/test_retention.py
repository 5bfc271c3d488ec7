"""Retention of partition logs, and the configs that control it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from quorate.broker.partition.settings import PartitionSettings
from quorate.broker.replication import replica_manager
from quorate.quorum.log.files.settings import LogSettings
from quorate.quorum.metadata.delta import ImageDelta
from quorate.quorum.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE
from quorate.quorum.protocol.errors import ErrorCode
from tests.unit.replication.cluster import LOG_DIR, ReplicaCluster, led_by

MakeCluster = Callable[..., ReplicaCluster]


@pytest.fixture
def cluster(make_cluster: MakeCluster) -> ReplicaCluster:
    return make_cluster(brokers=1)


def test_changed_configs_hold_at_once(cluster: ReplicaCluster) -> None:
    topic = cluster.create("t", [led_by(1, 2, isr=(1,))])
    cluster.run(20)
    assert cluster.produce(1, topic)[0].error == 0
    cluster.partition_settings = PartitionSettings(min_insync_replicas=2)
    delta = ImageDelta(configs=((TOPIC_RESOURCE, "t"),))
    cluster.nodes[1].replicas.apply(cluster.image, delta)
    assert cluster.produce(1, topic)[0].error == ErrorCode.NOT_ENOUGH_REPLICAS
    cluster.partition_settings = PartitionSettings()
    cluster.nodes[1].replicas.apply(cluster.image, ImageDelta(configs=((BROKER_RESOURCE, ""),)))
    cluster.run(10)  # lower values of the node follow in slices
    assert cluster.produce(1, topic)[0].error == 0


def test_retention_takes_old_segments_and_tells_followers(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(brokers=2, retention_check_interval_ms=1000)
    cluster.log_settings = LogSettings(segment_bytes=100, retention_bytes=250)
    topic = cluster.create("t", [led_by(1, 2)])
    cluster.run(50)
    for index in range(6):
        cluster.produce(1, topic, b"%040d" % index)
        cluster.run(20)
    cluster.run(1600)
    starts = [cluster.hosted(each, topic).log.start_offset for each in (1, 2)]
    assert starts[0] == starts[1] > 0
    assert cluster.fetch(1, topic, 0)[0].error == ErrorCode.OFFSET_OUT_OF_RANGE


def test_an_expired_segment_is_removed_after_the_delay(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(brokers=1, retention_check_interval_ms=1000)
    cluster.log_settings = LogSettings(
        segment_bytes=100, retention_bytes=250, file_delete_delay_ms=5000
    )
    topic = cluster.create("t", [led_by(1)])
    cluster.run(50)
    for index in range(6):
        cluster.produce(1, topic, b"%040d" % index)
    disk = cluster.nodes[1].disk

    def deleted() -> list[str]:
        return [name for name in disk.list(f"{LOG_DIR}/t-0") if name.endswith(".deleted")]

    cluster.run(1000)
    assert deleted() and cluster.hosted(1, topic).log.start_offset > 0
    cluster.run(4900)
    assert deleted()
    cluster.run(200)
    assert not deleted()


def test_a_start_removes_what_the_delay_had_kept(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(brokers=1, retention_check_interval_ms=1000)
    cluster.log_settings = LogSettings(segment_bytes=100, retention_bytes=250)
    topic = cluster.create("t", [led_by(1)])
    cluster.run(50)
    for index in range(6):
        cluster.produce(1, topic, b"%040d" % index)
    cluster.run(1100)
    disk = cluster.shut_down(1)
    assert any(name.endswith(".deleted") for name in disk.list(f"{LOG_DIR}/t-0"))
    cluster.start(1, disk)
    cluster.run(50)
    assert not any(name.endswith(".deleted") for name in disk.list(f"{LOG_DIR}/t-0"))
    assert cluster.offsets(topic)[1][0] == 6


def test_retention_looks_at_a_few_logs_at_a_time_and_ends_with_the_node(
    make_cluster: MakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk's thread closes the logs of a node that stops, so retention must not use them."""
    monkeypatch.setattr(replica_manager, "RETAINED_PER_SLICE", 2)
    cluster = make_cluster(brokers=1)
    cluster.log_settings = LogSettings(segment_bytes=100, retention_bytes=250)
    topic = cluster.create("t", [led_by(1)] * 5)
    cluster.run(50)
    for partition_id in range(5):
        for index in range(6):
            cluster.produce(1, topic, b"%040d" % index, partition_id=partition_id)
    cluster.run(50)
    replicas = cluster.nodes[1].replicas

    def retained() -> list[bool]:
        return [cluster.hosted(1, topic, each).log.start_offset > 0 for each in range(5)]

    replicas._apply_retention()
    assert retained() == [True, True, False, False, False]
    cluster.run(50)
    assert retained() == [True] * 5
    for partition_id in range(5):
        cluster.produce(1, topic, bytes(400), partition_id=partition_id)
    starts = [cluster.hosted(1, topic, each).log.start_offset for each in range(5)]
    replicas._apply_retention()
    replicas.stop()
    cluster.run(50)
    moved = [cluster.hosted(1, topic, each).log.start_offset for each in range(5)]
    assert [now > then for now, then in zip(moved, starts, strict=True)] == [True, True] + [
        False
    ] * 3


def test_follower_behind_the_leaders_start_begins_there(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(brokers=2, retention_check_interval_ms=1000)
    cluster.log_settings = LogSettings(segment_bytes=100, retention_bytes=250)
    disk = cluster.kill(2)
    topic = cluster.create("t", [led_by(1, 2, isr=(1,))])
    cluster.run(20)
    for index in range(6):
        cluster.produce(1, topic, b"%040d" % index)
    cluster.run(1600)
    start = cluster.hosted(1, topic).log.start_offset
    assert start > 0
    cluster.start(2, disk)
    cluster.run(1600)
    assert cluster.hosted(2, topic).log.start_offset == start
    assert cluster.content(2, topic) == cluster.content(1, topic)
