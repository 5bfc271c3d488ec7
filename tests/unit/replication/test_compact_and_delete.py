"""Retention and the log cleaner work on one log at a time (cleanup.policy=compact,delete)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import cycle

import pytest

from quorate.broker.partition.settings import PartitionSettings
from quorate.broker.replication.partitions.settings import ReplicationSettings, TopicSettings
from quorate.config.topic_keys import effective_topic_configs, topic_defaults
from quorate.quorum.ids import Uuid
from quorate.quorum.log.batches.batch import batches, records_of
from quorate.quorum.log.files.settings import UNLIMITED
from tests.unit.replication.cluster import LOG_DIR, ReplicaCluster, led_by
from tests.unit.replication.test_log_cleaner import KEYS, T0, begin, compacted, send

MakeCluster = Callable[..., ReplicaCluster]
BOTH = PartitionSettings(compacted=True, deletes=True)
DELETE = PartitionSettings(compacted=False, deletes=True)
COMPACT = PartitionSettings(compacted=True, deletes=False)


def check(cluster: ReplicaCluster, topic: Uuid) -> None:
    """Check that the log has the last record of each key that retention has not removed."""
    log = cluster.hosted(1, topic).log
    found = {}
    for batch in cluster.content(1, topic):
        for position, header in batches(batch):
            for record in records_of(batch, position, header):
                if record.offset >= log.start_offset:
                    found[bytes(record.key or b"")] = record.offset
    end = log.end_offset
    latest = {b"k%d" % (offset % KEYS): offset for offset in range(end - KEYS, end)}
    assert found == {key: each for key, each in latest.items() if each >= log.start_offset}


@pytest.mark.parametrize("wait_ms", range(0, 700, 50))
def test_retention_removes_segments_while_they_are_cleaned(
    make_cluster: MakeCluster, wait_ms: int
) -> None:
    """KAFKA-6568, KAFKA-7441: neither leaves a state behind that stops the other."""
    cluster = compacted(make_cluster, threads=0)
    cluster.partition_settings = BOTH
    topic = cluster.create("t", [led_by(1)])
    cluster.run(50)
    send(cluster, topic, 300)
    replicas, log = cluster.nodes[1].replicas, cluster.hosted(1, topic).log
    cleaner = begin(cluster, io_max_bytes_per_second=30_000.0)
    cluster.run(wait_ms)
    log.settings = replace(log.settings, retention_bytes=4_000)
    replicas._apply_retention()
    assert log.start_offset > 0
    log.settings = replace(log.settings, retention_bytes=UNLIMITED)
    cluster.run(20_000)
    check(cluster, topic)
    assert not cleaner.in_progress and not cleaner.uncleanable
    assert cleaner.figures.cleanings > 0
    send(cluster, topic, 300)
    cleaned = cleaner.figures.cleanings
    cluster.run(20_000)
    assert cleaner.figures.cleanings > cleaned, "the cleaner still takes this log"
    assert log.start_offset <= (replicas.logs.cleaner_offset(T0) or -1) <= log.end_offset
    check(cluster, topic)
    before = log.start_offset
    log.settings = replace(log.settings, retention_bytes=0)
    replicas._apply_retention()
    assert log.start_offset > before, "retention still takes this log"
    cluster.run(500)
    names = cluster.nodes[1].disk.list(f"{LOG_DIR}/t-0")
    assert not [each for each in names if each.endswith((".cleaned", ".swap", ".deleted"))]


def test_the_policy_changes_while_both_work(make_cluster: MakeCluster) -> None:
    """KAFKA-7322: retention and the cleaner both believed that the log was theirs."""
    cluster = compacted(make_cluster, threads=0)
    cluster.partition_settings = BOTH
    topic = cluster.create("t", [led_by(1)])
    cluster.run(50)
    send(cluster, topic, 100)
    cleaner = begin(cluster, io_max_bytes_per_second=20_000.0)
    replicas, hosted = cluster.nodes[1].replicas, cluster.hosted(1, topic)
    kept = 0
    for number, policy in zip(range(24), cycle((DELETE, BOTH, COMPACT, BOTH)), strict=False):
        hosted.partition.configure(policy, 0)
        retained = 6_000 if policy.deletes else UNLIMITED
        hosted.log.settings = replace(hosted.log.settings, retention_bytes=retained)
        send(cluster, topic, 20 * KEYS)
        replicas._apply_retention()
        cluster.run(37 * number % 400)
        kept += bool(cleaner.in_progress)
        check(cluster, topic)
    assert kept > 3, "some changes met a cleaning"
    hosted.partition.configure(BOTH, 0)
    cluster.run(20_000)
    check(cluster, topic)
    assert cleaner.figures.cleanings > 3 and not cleaner.uncleanable
    assert hosted.log.start_offset > 0


@pytest.mark.parametrize("policy", ["compact", "compact,delete", "delete"])
def test_retention_limits_apply_to_the_policy_delete_only(policy: str) -> None:
    texts = {"cleanup.policy": policy, "retention.bytes": "5", "retention.ms": "6"}
    configs = effective_topic_configs(texts, topic_defaults({}))
    log = TopicSettings.of(configs, ReplicationSettings(log_dirs=(LOG_DIR,)), 1).log
    limits = (log.retention_bytes, log.retention_ms)
    assert limits == ((5, 6) if "delete" in policy else (UNLIMITED, UNLIMITED))


def test_segments_below_the_log_start_of_a_compacted_log_are_removed(
    make_cluster: MakeCluster,
) -> None:
    """KAFKA-7400: with the policy compact, the segments below the log start stayed."""
    cluster = compacted(make_cluster, threads=0)
    topic = cluster.create("t", [led_by(1)])
    cluster.run(50)
    send(cluster, topic, 100)
    log = cluster.hosted(1, topic).log
    size = log.size_bytes
    log.advance_start(90)
    cluster.nodes[1].replicas._apply_retention()
    assert log.size_bytes < size / 3
    check(cluster, topic)
