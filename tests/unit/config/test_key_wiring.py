"""Each key reaches the settings object that the code with its effect reads.

The effects themselves are shown by the tests that `key_effects.txt` names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from quorate.broker.controller.lifecycle import LifecycleSettings
from quorate.broker.groups.settings import GroupSettings
from quorate.broker.kafka.cluster.auto_create import internal_topics
from quorate.broker.logs.cleaner_settings import CleanerSettings
from quorate.broker.partition.replica_selectors import RACK_AWARE
from quorate.broker.replication.partitions.settings import ReplicationSettings, TopicSettings
from quorate.config.loader import load
from quorate.config.node_config import NodeConfig
from quorate.config.topic_keys import TOPIC_KEYS, effective_topic_configs, topic_defaults
from quorate.quorum.log.batches.compression import Codec
from quorate.quorum.log.batches.recompression import Compression
from quorate.quorum.metadata.internal_topics import OFFSETS_TOPIC
from quorate.quorum.node.controller.controller_settings import controller_settings
from quorate.quorum.node.replica.node_settings import (
    metadata_log_settings,
    raft_settings,
    snapshot_settings,
)
from quorate.quorum.quotas.sampled_rate import Windows
from quorate.quorum.rpc.budget import MemoryLimits
from quorate.quorum.rpc.kafka.connection_quotas import ConnectionLimits
from quorate.quorum.rpc.socket_options import SocketOptions

COMBINED = {
    "process.roles": "broker,controller",
    "node.id": "4",
    "controller.quorum.voters": "4@localhost:9093",
    "listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
    "controller.listener.names": "CONTROLLER",
    "log.dirs": "/tmp/x",
}


def loaded(settings: Mapping[str, str]) -> NodeConfig:
    """Return the configuration of a combined node with these settings."""
    return load(None, environment={}, overrides={**COMBINED, **settings}, hostname="here")


def controller(config: NodeConfig) -> Any:
    return controller_settings(config, "cluster")


def replication(config: NodeConfig) -> ReplicationSettings:
    return ReplicationSettings.of(config, config.log_dirs)


def cleaner(config: NodeConfig) -> CleanerSettings:
    return CleanerSettings.of(config)


def topic(config: NodeConfig, overrides: Mapping[str, str] | None = None) -> TopicSettings:
    """Return the settings of a topic with these configs on the node."""
    configs = effective_topic_configs(overrides or {}, topic_defaults(config))
    return TopicSettings.of(configs, replication(config), config.node_id)


NODE: dict[str, tuple[str, Callable[[NodeConfig], object], object]] = {
    # key: (text, the value that the code reads, the expected value)
    "advertised.listeners": (
        "PLAINTEXT://seen:1234",
        lambda c: [(each.host, each.port) for each in c.listeners.advertised][:1],
        [("seen", 1234)],
    ),
    "auto.leader.rebalance.enable": ("false", lambda c: controller(c).auto_leader_rebalance, False),
    "broker.heartbeat.interval.ms": (
        "77",
        lambda c: LifecycleSettings.of(c).heartbeat_interval_ms,
        77,
    ),
    "broker.session.timeout.ms": (
        "7777",
        lambda c: (controller(c).session_timeout_ms, LifecycleSettings.of(c).session_timeout_ms),
        (7777, 7777),
    ),
    "connections.max.idle.ms": ("77", lambda c: ConnectionLimits.of(c).max_idle_ms, 77),
    "controller.quota.window.num": ("7", lambda c: controller(c).mutation_windows.count, 7),
    "controller.quota.window.size.seconds": (
        "7",
        lambda c: controller(c).mutation_windows.size_ms,
        7000,
    ),
    "controller.quorum.auto.join.enable": ("true", lambda c: raft_settings(c).auto_join, True),
    "controller.quorum.election.backoff.max.ms": (
        "77",
        lambda c: raft_settings(c).election_backoff_max_ms,
        77,
    ),
    "controller.quorum.election.timeout.ms": (
        "77",
        lambda c: raft_settings(c).election_timeout_ms,
        77,
    ),
    "controller.quorum.fetch.timeout.ms": ("77", lambda c: raft_settings(c).fetch_timeout_ms, 77),
    "controller.quorum.request.timeout.ms": (
        "77",
        lambda c: raft_settings(c).request_timeout_ms,
        77,
    ),
    "controller.quorum.retry.backoff.ms": ("77", lambda c: raft_settings(c).retry_backoff_ms, 77),
    "default.replication.factor": ("3", lambda c: controller(c).default_replication_factor, 3),
    "delete.topic.enable": ("false", lambda c: controller(c).topic_deletion, False),
    "fetch.max.bytes": ("7777", lambda c: replication(c).fetch_max_bytes, 7777),
    "group.initial.rebalance.delay.ms": (
        "77",
        lambda c: GroupSettings.of(c).initial_rebalance_delay_ms,
        77,
    ),
    "group.max.session.timeout.ms": (
        "77",
        lambda c: GroupSettings.of(c).max_session_timeout_ms,
        77,
    ),
    "group.max.size": ("77", lambda c: GroupSettings.of(c).max_size, 77),
    "group.min.session.timeout.ms": (
        "77",
        lambda c: GroupSettings.of(c).min_session_timeout_ms,
        77,
    ),
    "initial.broker.registration.timeout.ms": (
        "77",
        lambda c: LifecycleSettings.of(c).registration_timeout_ms,
        77,
    ),
    "log.dir.failure.timeout.ms": (
        "77",
        lambda c: LifecycleSettings.of(c).directory_failure_timeout_ms,
        77,
    ),
    "inter.broker.listener.name": (
        "REPLICATION",
        lambda c: controller(c).inter_broker_listener,
        "REPLICATION",
    ),
    "internal.metadata.log.segment.bytes": (
        "77",
        lambda c: metadata_log_settings(c).segment_bytes,
        77,
    ),
    "leader.imbalance.check.interval.seconds": (
        "7",
        lambda c: controller(c).imbalance_check_interval_ms,
        7000,
    ),
    "leader.imbalance.per.broker.percentage": (
        "7",
        lambda c: controller(c).imbalance_percentage,
        7,
    ),
    "log.cleaner.backoff.ms": ("77", lambda c: cleaner(c).backoff_ms, 77),
    "log.cleaner.dedupe.buffer.size": (
        "7777777",
        lambda c: cleaner(c).dedupe_buffer_bytes,
        7777777,
    ),
    "log.cleaner.enable": ("false", lambda c: cleaner(c).enabled, False),
    "log.cleaner.io.buffer.load.factor": ("0.7", lambda c: cleaner(c).load_factor, 0.7),
    "log.cleaner.io.buffer.size": ("77", lambda c: cleaner(c).io_buffer_bytes, 77),
    "log.cleaner.io.max.bytes.per.second": (
        "77",
        lambda c: cleaner(c).io_max_bytes_per_second,
        77,
    ),
    "log.cleaner.threads": ("7", lambda c: cleaner(c).threads, 7),
    "alter.log.dirs.replication.quota.window.num": (
        "7",
        lambda c: replication(c).move_quota_windows,
        7,
    ),
    "alter.log.dirs.replication.quota.window.size.seconds": (
        "7",
        lambda c: replication(c).move_quota_window_seconds,
        7,
    ),
    "replication.quota.window.num": ("7", lambda c: replication(c).replication_quota_windows, 7),
    "replication.quota.window.size.seconds": (
        "7",
        lambda c: replication(c).replication_quota_window_seconds,
        7,
    ),
    "log.flush.offset.checkpoint.interval.ms": (
        "77",
        lambda c: replication(c).flush_checkpoint_interval_ms,
        77,
    ),
    "log.flush.scheduler.interval.ms": (
        "77",
        lambda c: (replication(c).flush_scheduler_interval_ms, topic(c).log.flush_ms),
        (77, 77),
    ),
    "log.flush.start.offset.checkpoint.interval.ms": (
        "77",
        lambda c: replication(c).start_offset_checkpoint_interval_ms,
        77,
    ),
    "log.retention.check.interval.ms": (
        "77",
        lambda c: replication(c).retention_check_interval_ms,
        77,
    ),
    "log.segment.delete.delay.ms": (
        "77",
        lambda c: (replication(c).file_delete_delay_ms, topic(c).log.file_delete_delay_ms),
        (77, 77),
    ),
    "max.connection.creation.rate": ("77", lambda c: ConnectionLimits.of(c).max_creation_rate, 77),
    "max.connections": ("7", lambda c: ConnectionLimits.of(c).max_connections, 7),
    "max.connections.per.ip": ("77", lambda c: ConnectionLimits.of(c).max_connections_per_ip, 77),
    "max.connections.per.ip.overrides": (
        "10.0.0.1:5",
        lambda c: ConnectionLimits.of(c).max_of_host("10.0.0.1"),
        5,
    ),
    "max.incremental.fetch.session.cache.slots": (
        "77",
        lambda c: replication(c).max_fetch_sessions,
        77,
    ),
    "metadata.log.dir": ("/m", lambda c: c.metadata_log_dir, "/m"),
    "metadata.log.max.record.bytes.between.snapshots": (
        "77",
        lambda c: snapshot_settings(c).bytes_between,
        77,
    ),
    "metadata.log.max.snapshot.interval.ms": (
        "77",
        lambda c: snapshot_settings(c).interval_ms,
        77,
    ),
    "metadata.log.segment.bytes": (
        "8388609",
        lambda c: metadata_log_settings(c).segment_bytes,
        8388609,
    ),
    "metadata.log.segment.ms": ("77", lambda c: metadata_log_settings(c).segment_ms, 77),
    "metadata.max.idle.interval.ms": ("77", lambda c: controller(c).max_idle_interval_ms, 77),
    "metadata.max.retention.bytes": ("77", lambda c: snapshot_settings(c).retention_bytes, 77),
    "metadata.max.retention.ms": ("77", lambda c: snapshot_settings(c).retention_ms, 77),
    "num.replica.fetchers": ("7", lambda c: replication(c).num_replica_fetchers, 7),
    "num.partitions": ("7", lambda c: controller(c).default_partitions, 7),
    "offset.metadata.max.bytes": (
        "77",
        lambda c: GroupSettings.of(c).offset_metadata_max_bytes,
        77,
    ),
    "offsets.retention.check.interval.ms": (
        "77",
        lambda c: GroupSettings.of(c).offsets_retention_check_interval_ms,
        77,
    ),
    "offsets.retention.minutes": (
        "7",
        lambda c: GroupSettings.of(c).offsets_retention_ms,
        420_000,
    ),
    "offsets.topic.num.partitions": (
        "7",
        lambda c: internal_topics(c)[OFFSETS_TOPIC].num_partitions,
        7,
    ),
    "offsets.topic.replication.factor": (
        "2",
        lambda c: internal_topics(c)[OFFSETS_TOPIC].replication_factor,
        2,
    ),
    "offsets.topic.segment.bytes": (
        "7777777",
        lambda c: {each.name: each.value for each in internal_topics(c)[OFFSETS_TOPIC].configs}[
            "segment.bytes"
        ],
        "7777777",
    ),
    "producer.id.expiration.check.interval.ms": (
        "77",
        lambda c: replication(c).producer_expiration_check_interval_ms,
        77,
    ),
    "producer.id.expiration.ms": (
        "77",
        lambda c: topic(c).partition.producer_id_expiration_ms,
        77,
    ),
    "log.dirs": ("/p,/q", lambda c: c.log_dirs, ("/p", "/q")),
    "quorate.http.host.names": ("metrics.here", lambda c: "metrics.here" in c.host_names, True),
    "quorate.state.change.log.enable": ("true", lambda c: replication(c).state_change_log, True),
    "unclean.recovery.strategy": (
        "balanced",
        lambda c: controller(c).topic_defaults["unclean.recovery.strategy"],
        "balanced",
    ),
    "queued.max.request.bytes": ("77", lambda c: MemoryLimits.of(c).request_bytes, 77),
    "quota.window.num": ("7", lambda c: Windows.of(c).count, 7),
    "quota.window.size.seconds": ("7", lambda c: Windows.of(c).size_ms, 7000),
    "queued.max.requests": ("77", lambda c: ConnectionLimits.of(c).max_queued_requests, 77),
    "quorate.fetch.sessions.max.bytes": ("77", lambda c: MemoryLimits.of(c).session_bytes, 77),
    "quorate.hints.enable": (
        "false",
        lambda c: (controller(c).hints, raft_settings(c).hints),
        (False, False),
    ),
    "quorate.metadata.archive.dir": (
        "/a",
        lambda c: metadata_log_settings(c).archive_directory,
        "/a",
    ),
    "quorate.queued.max.response.bytes": ("77", lambda c: MemoryLimits.of(c).response_bytes, 77),
    "replica.fetch.backoff.ms": ("77", lambda c: replication(c).replica_fetch_backoff_ms, 77),
    "replica.fetch.max.bytes": ("77", lambda c: replication(c).replica_fetch_max_bytes, 77),
    "replica.fetch.min.bytes": ("77", lambda c: replication(c).replica_fetch_min_bytes, 77),
    "replica.fetch.response.max.bytes": (
        "77",
        lambda c: replication(c).replica_fetch_response_max_bytes,
        77,
    ),
    "replica.fetch.wait.max.ms": ("77", lambda c: replication(c).replica_fetch_wait_max_ms, 77),
    "replica.high.watermark.checkpoint.interval.ms": (
        "77",
        lambda c: replication(c).high_watermark_checkpoint_interval_ms,
        77,
    ),
    "replica.lag.time.max.ms": (
        "7777",
        lambda c: (
            replication(c).replica_lag_time_max_ms,
            topic(c).partition.replica_lag_time_max_ms,
        ),
        (7777, 7777),
    ),
    "replica.selector.class": (
        RACK_AWARE,
        lambda c: replication(c).replica_selector,
        RACK_AWARE,
    ),
    "replica.socket.timeout.ms": ("77", lambda c: replication(c).replica_socket_timeout_ms, 77),
    "socket.listen.backlog.size": ("77", lambda c: SocketOptions.of(c).backlog, 77),
    "socket.receive.buffer.bytes": (
        "7777",
        lambda c: SocketOptions.of(c).receive_buffer_bytes,
        7777,
    ),
    "socket.request.max.bytes": ("77", lambda c: replication(c).max_frame_bytes, 77),
    "socket.send.buffer.bytes": ("7777", lambda c: SocketOptions.of(c).send_buffer_bytes, 7777),
    "unclean.leader.election.enable": (
        "true",
        lambda c: controller(c).topic_defaults["unclean.leader.election.enable"],
        True,
    ),
    "unclean.leader.election.interval.ms": (
        "77",
        lambda c: controller(c).unclean_election_interval_ms,
        77,
    ),
}
"""The node keys that are not defaults of topic keys."""

TOPIC: dict[str, tuple[str, Callable[[TopicSettings], object], object]] = {
    "cleanup.policy": (
        "compact",
        lambda t: (t.partition.compacted, t.partition.deletes, t.log.retention_ms),
        (True, False, -1),
    ),
    "compression.type": (
        "snappy",
        lambda t: t.partition.compression,
        Compression(Codec.SNAPPY),
    ),
    "delete.retention.ms": ("77", lambda t: t.partition.compaction.delete_retention_ms, 77),
    "file.delete.delay.ms": ("77", lambda t: t.log.file_delete_delay_ms, 77),
    "flush.messages": ("77", lambda t: t.log.flush_messages, 77),
    "flush.ms": ("77", lambda t: t.log.flush_ms, 77),
    "follower.replication.throttled.replicas": (
        "3:4,5:6",
        lambda t: [each in t.follower_throttled for each in (3, 5)],
        [True, False],
    ),
    "leader.replication.throttled.replicas": (
        "3:4,5:6",
        lambda t: [each in t.leader_throttled for each in (3, 5)],
        [True, False],
    ),
    "index.interval.bytes": ("77", lambda t: t.log.index_interval_bytes, 77),
    "internal.segment.bytes": ("77", lambda t: t.log.segment_bytes, 77),
    "max.compaction.lag.ms": ("77", lambda t: t.partition.compaction.max_lag_ms, 77),
    "max.message.bytes": ("77", lambda t: t.partition.max_message_bytes, 77),
    "message.timestamp.after.max.ms": ("77", lambda t: t.partition.timestamp_after_max_ms, 77),
    "message.timestamp.before.max.ms": ("77", lambda t: t.partition.timestamp_before_max_ms, 77),
    "message.timestamp.type": ("LogAppendTime", lambda t: t.partition.log_append_time, True),
    "min.cleanable.dirty.ratio": ("0.7", lambda t: t.partition.compaction.min_dirty_ratio, 0.7),
    "min.compaction.lag.ms": ("77", lambda t: t.partition.compaction.min_lag_ms, 77),
    "min.insync.replicas": ("7", lambda t: t.partition.min_insync_replicas, 7),
    "preallocate": ("true", lambda t: t.log.preallocate, True),
    "retention.bytes": ("77", lambda t: t.log.retention_bytes, 77),
    "retention.ms": ("77", lambda t: t.log.retention_ms, 77),
    "segment.bytes": (
        "7777777",
        lambda t: (t.log.segment_bytes, t.partition.segment_bytes),
        (7777777, 7777777),
    ),
    "segment.index.bytes": ("77", lambda t: t.log.index_max_bytes, 77),
    "segment.jitter.ms": ("77", lambda t: t.log.segment_jitter_ms, 77),
    "segment.ms": ("77", lambda t: t.log.segment_ms, 77),
}
"""The topic keys. Their synonyms among the node keys reach the same value."""

SYNONYMS = {
    node_key: (name, factor)
    for name, key in TOPIC_KEYS.items()
    for node_key, factor in key.synonyms
    if name in TOPIC
}
"""Each node key that is a default of a topic key: the topic key and the factor of its unit."""


@pytest.mark.parametrize("name", NODE)
def test_a_node_key_reaches_its_settings(name: str) -> None:
    text, read, expected = NODE[name]
    assert read(loaded({name: text})) == expected
    if name not in ("inter.broker.listener.name",):
        assert read(loaded({})) != expected, "the default is no evidence"


@pytest.mark.parametrize("name", TOPIC)
def test_a_topic_key_reaches_its_settings(name: str) -> None:
    text, read, expected = TOPIC[name]
    config = loaded({})
    assert read(topic(config, {name: text})) == expected
    assert read(topic(config)) != expected, "the default is no evidence"


@pytest.mark.parametrize(("name", "level"), [("gzip", 7), ("lz4", 17), ("zstd", -5)])
def test_a_compression_level_reaches_its_settings(name: str, level: int) -> None:
    key = f"compression.{name}.level"
    expected = Compression(Codec[name.upper()], level)
    config = loaded({})
    configs = {"compression.type": name, key: str(level)}
    assert topic(config, configs).partition.compression == expected
    config = loaded({"compression.type": name, key: str(level)})
    assert topic(config).partition.compression == expected


@pytest.mark.parametrize("node_key", SYNONYMS)
def test_the_default_of_a_topic_key_comes_from_the_node(node_key: str) -> None:
    name, factor = SYNONYMS[node_key]
    text, read, expected = TOPIC[name]
    if factor != 1:
        assert isinstance(expected, int)
        expected = int(text) * factor
    assert read(topic(loaded({node_key: text}))) == expected
    assert read(topic(loaded({node_key: text}), {name: text})) == TOPIC[name][2]


def test_the_listener_of_brokers_is_known_in_upper_case() -> None:
    """The controller gave each broker a second endpoint, under the name in lower case."""
    listeners = "PLAINTEXT://localhost:9092,internal://localhost:9094,CONTROLLER://localhost:9093"
    config = loaded({"listeners": listeners, "inter.broker.listener.name": "internal"})
    assert config.listeners.replication is not None
    assert config.listeners.replication.name == controller(config).inter_broker_listener
