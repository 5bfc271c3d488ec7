"""The settings of replication, with Kafka's names and defaults where Kafka has them, and the
settings of a topic."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from typing import Any

from quorate.broker.compaction.cleanable import CompactionSettings
from quorate.broker.logs.cleaner_settings import CleanerSettings
from quorate.broker.partition.settings import PartitionSettings
from quorate.broker.replication.partitions.replication_throttle import (
    NO_PARTITIONS,
    throttled_partitions,
)
from quorate.quorum.log.batches.recompression import LEVELS, Compression
from quorate.quorum.log.files.settings import NEVER, UNLIMITED, LogSettings
from quorate.quorum.rpc.node_identity import UNPROVED, NodeProof

KIB = 1024
MIB = 1024 * KIB


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicationSettings:
    """The settings of one broker's replication. Times are in ms, sizes in bytes.

    `_NODE_KEYS` has the key of each field. No key sets `producer_expiration_check_interval_ms` and
    `max_delayed_fetches`. `log_dirs` are the paths of the log directories."""

    replica_lag_time_max_ms: int = 30_000
    replica_fetch_max_bytes: int = MIB
    replica_fetch_response_max_bytes: int = 10 * MIB
    replica_fetch_min_bytes: int = 1
    replica_fetch_wait_max_ms: int = 500
    replica_fetch_backoff_ms: int = 1000
    replica_socket_timeout_ms: int = 30_000
    high_watermark_checkpoint_interval_ms: int = 5000
    flush_checkpoint_interval_ms: int = 60_000
    start_offset_checkpoint_interval_ms: int = 60_000
    flush_scheduler_interval_ms: int = NEVER
    retention_check_interval_ms: int = 300_000
    producer_expiration_check_interval_ms: int = 600_000
    producer_id_expiration_ms: int = 86_400_000
    file_delete_delay_ms: int = 60_000
    fetch_max_bytes: int = 55 * MIB
    max_fetch_sessions: int = 1000
    max_delayed_fetches: int = 10_000
    cleaner: CleanerSettings = CleanerSettings()
    log_dirs: tuple[str, ...]
    max_frame_bytes: int = 100 * MIB
    replica_selector: str | None = None
    num_replica_fetchers: int = 1
    replication_quota_windows: int = 11
    replication_quota_window_seconds: int = 1
    move_quota_windows: int = 11
    move_quota_window_seconds: int = 1
    state_change_log: bool = False
    proof: NodeProof = UNPROVED
    """The rule by which the leaders that this broker follows prove their ids."""

    @classmethod
    def of(
        cls,
        node: Mapping[str, Any],
        log_dirs: tuple[str, ...],
        proof: NodeProof = UNPROVED,
    ) -> ReplicationSettings:
        """Return the settings of a node's typed configuration (`quorate.config`). A missing key
        gives the default."""
        return cls(
            log_dirs=log_dirs,
            proof=proof,
            cleaner=CleanerSettings.of(node),
            **{name: node[key] for name, key in _NODE_KEYS.items() if key in node},
        )


_NODE_KEYS = {
    "replica_lag_time_max_ms": "replica.lag.time.max.ms",
    "replica_fetch_max_bytes": "replica.fetch.max.bytes",
    "replica_fetch_response_max_bytes": "replica.fetch.response.max.bytes",
    "replica_fetch_min_bytes": "replica.fetch.min.bytes",
    "replica_fetch_wait_max_ms": "replica.fetch.wait.max.ms",
    "replica_fetch_backoff_ms": "replica.fetch.backoff.ms",
    "replica_socket_timeout_ms": "replica.socket.timeout.ms",
    "high_watermark_checkpoint_interval_ms": "replica.high.watermark.checkpoint.interval.ms",
    "flush_checkpoint_interval_ms": "log.flush.offset.checkpoint.interval.ms",
    "start_offset_checkpoint_interval_ms": "log.flush.start.offset.checkpoint.interval.ms",
    "flush_scheduler_interval_ms": "log.flush.scheduler.interval.ms",
    "retention_check_interval_ms": "log.retention.check.interval.ms",
    "producer_expiration_check_interval_ms": "producer.id.expiration.check.interval.ms",
    "producer_id_expiration_ms": "producer.id.expiration.ms",
    "file_delete_delay_ms": "log.segment.delete.delay.ms",
    "fetch_max_bytes": "fetch.max.bytes",
    "max_fetch_sessions": "max.incremental.fetch.session.cache.slots",
    "max_frame_bytes": "socket.request.max.bytes",
    "replica_selector": "replica.selector.class",
    "num_replica_fetchers": "num.replica.fetchers",
    "replication_quota_windows": "replication.quota.window.num",
    "replication_quota_window_seconds": "replication.quota.window.size.seconds",
    "move_quota_windows": "alter.log.dirs.replication.quota.window.num",
    "move_quota_window_seconds": "alter.log.dirs.replication.quota.window.size.seconds",
    "state_change_log": "quorate.state.change.log.enable",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSettings:
    """The effective settings of one topic on this broker."""

    partition: PartitionSettings = field(default_factory=PartitionSettings)
    log: LogSettings = field(default_factory=LogSettings)
    leader_throttled: Container[int] = NO_PARTITIONS
    follower_throttled: Container[int] = NO_PARTITIONS
    """The partitions whose replica on this broker is listed in the throttled replicas."""

    @classmethod
    def of(
        cls, configs: Mapping[str, Any], replication: ReplicationSettings, broker_id: int
    ) -> TopicSettings:
        """Return the settings of a topic's effective, typed configs
        (`quorate.config.topic_keys`). Retention is unlimited if cleanup.policy lacks delete. A
        segment of a compacted topic is active for max.compaction.lag.ms at most (KIP-354)."""
        deletes = "delete" in configs["cleanup.policy"]
        compacted = "compact" in configs["cleanup.policy"]
        max_lag_ms = configs["max.compaction.lag.ms"]
        return cls(
            partition=PartitionSettings(
                min_insync_replicas=configs["min.insync.replicas"],
                replica_lag_time_max_ms=replication.replica_lag_time_max_ms,
                max_message_bytes=configs["max.message.bytes"],
                segment_bytes=configs["segment.bytes"],
                compacted=compacted,
                deletes=deletes,
                compaction=CompactionSettings(
                    min_dirty_ratio=configs["min.cleanable.dirty.ratio"],
                    min_lag_ms=configs["min.compaction.lag.ms"],
                    max_lag_ms=configs["max.compaction.lag.ms"],
                    delete_retention_ms=configs["delete.retention.ms"],
                ),
                log_append_time=configs["message.timestamp.type"] == "LogAppendTime",
                timestamp_before_max_ms=configs["message.timestamp.before.max.ms"],
                timestamp_after_max_ms=configs["message.timestamp.after.max.ms"],
                producer_id_expiration_ms=replication.producer_id_expiration_ms,
                compression=Compression.of(
                    configs["compression.type"],
                    {name: configs[f"compression.{name}.level"] for name in LEVELS},
                ),
            ),
            log=LogSettings(
                segment_bytes=configs.get("internal.segment.bytes") or configs["segment.bytes"],
                segment_ms=min(configs["segment.ms"], max_lag_ms if compacted else NEVER),
                segment_jitter_ms=configs["segment.jitter.ms"],
                preallocate=configs["preallocate"],
                index_interval_bytes=configs["index.interval.bytes"],
                index_max_bytes=configs["segment.index.bytes"],
                file_delete_delay_ms=configs["file.delete.delay.ms"],
                flush_messages=configs["flush.messages"],
                flush_ms=configs["flush.ms"],
                retention_bytes=limit(configs["retention.bytes"]) if deletes else UNLIMITED,
                retention_ms=limit(configs["retention.ms"]) if deletes else UNLIMITED,
            ),
            leader_throttled=throttled_partitions(
                configs["leader.replication.throttled.replicas"], broker_id
            ),
            follower_throttled=throttled_partitions(
                configs["follower.replication.throttled.replicas"], broker_id
            ),
        )


def limit(value: int) -> int:
    """Return a limit of retention. In Kafka, every negative value means that there is none."""
    return max(UNLIMITED, value)
