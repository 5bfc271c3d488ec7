"""A broker applies min.insync.replicas and the roles of one delta in a safe order (KIP-966).

The ELR rests on the rule that no leader commits records while the ISR is below
min.insync.replicas. One delta may hold a new value together with a new ISR or leader."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from quorate.broker.partition.settings import PartitionSettings
from quorate.quorum.log.files.errors import CorruptLog
from quorate.quorum.metadata.image import TOPIC_RESOURCE
from quorate.quorum.metadata.persistent_map import PersistentMap
from quorate.quorum.protocol.errors import ErrorCode
from tests.unit.replication.cluster import ReplicaCluster, led_by
from tests.unit.replication.test_damage import PATH, MakeCluster, logs, written


def set_min_isr(cluster: ReplicaCluster, value: int) -> None:
    """Write min.insync.replicas of topic t into the image."""
    cluster.partition_settings = PartitionSettings(min_insync_replicas=value)
    configs = cluster.image.configs.insert(
        (TOPIC_RESOURCE, "t"), PersistentMap({"min.insync.replicas": str(value)})
    )
    cluster.image = cluster.image._replace(configs=configs)


def fence(cluster: ReplicaCluster, *broker_ids: int) -> None:
    """Cut the brokers off and fence them, so that the high watermark waits for the ISR only."""
    for broker_id in broker_ids:
        cluster.network.isolate(f"b{broker_id}")
        fenced = replace(cluster.image.brokers[broker_id], fenced=True)
        brokers = cluster.image.brokers.insert(broker_id, fenced)
        cluster.image = cluster.image._replace(brokers=brokers)


def test_a_raised_min_isr_counts_before_a_smaller_isr(make_cluster: MakeCluster) -> None:
    """With the old value, the leader would commit alone what the ELR does not have."""
    cluster = make_cluster(brokers=3)
    topic = cluster.create("t", [led_by(1, 2, 3)])
    cluster.run(50)
    fence(cluster, 2, 3)
    answers = cluster.produce(1, topic)
    cluster.run(50)
    set_min_isr(cluster, 2)
    cluster.change(topic, isr=(1,), elr=(2, 3))
    cluster.spread(1)
    cluster.run(50)
    assert not answers
    assert cluster.hosted(1, topic).partition.high_watermark == 0


def test_a_lowered_min_isr_does_not_count_in_a_leadership_that_is_over(
    make_cluster: MakeCluster,
) -> None:
    """Before the value was lowered, a member of the ELR was elected that lacks the record."""
    cluster = make_cluster(brokers=3)
    cluster.partition_settings = PartitionSettings(min_insync_replicas=2)
    topic = cluster.create("t", [led_by(1, 2, 3)])
    cluster.run(50)
    fence(cluster, 2, 3)
    answers = cluster.produce(1, topic)
    cluster.run(50)
    cluster.change(topic, isr=(1,), elr=(2, 3))
    cluster.spread(1)
    cluster.run(50)
    assert not answers
    cluster.change(topic, leader=2, isr=(2,), elr=(1, 3))
    set_min_isr(cluster, 1)
    cluster.change(topic, elr=())
    cluster.spread(1)
    cluster.run(50)
    assert answers[0].error == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert cluster.hosted(1, topic).partition.high_watermark == 0


@pytest.mark.parametrize("fields", [{"elr": (1,)}, {"last_known_elr": (1,)}])
def test_the_only_replica_that_may_lead_does_not_repair_its_log(
    make_cluster: MakeCluster, fields: dict[str, Any]
) -> None:
    """Outside of the ISR, but with the only copy: the broker refuses and touches nothing."""
    cluster, topic = written(make_cluster, brokers=1)
    disk = cluster.kill(1)
    disk.flip(logs(disk)[-1], 70)
    cluster.change(topic, isr=(), leader=-1, **fields)
    before = {name: disk.content(f"{PATH}/{name}") for name in disk.list(PATH)}
    cluster.start(1, disk)
    with pytest.raises(AssertionError, match="damaged at byte"):
        cluster.run(50)
    assert isinstance(cluster.failures[0], CorruptLog)
    assert before == {name: disk.content(f"{PATH}/{name}") for name in disk.list(PATH)}
    cluster.failures.clear()
