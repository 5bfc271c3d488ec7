"""The settings of one partition that its rules need, from the topic's and the broker's configs."""

from __future__ import annotations

from dataclasses import dataclass

from quorate.broker.compaction.cleanable import CompactionSettings
from quorate.quorum.log.batches.recompression import Compression

NO_LIMIT = 2**63 - 1
"""The value of message.timestamp.before.max.ms with which no timestamp is too early."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSettings:
    """Kafka's topic and broker configs of the same names, with Kafka's defaults. Times are in ms,
    sizes in bytes.

    `deletes` and `compacted` are True if cleanup.policy contains delete and compact. `compacted`
    makes a key mandatory, and `compaction` is for the log cleaner. `log_append_time` is True if
    message.timestamp.type is LogAppendTime."""

    min_insync_replicas: int = 1
    replica_lag_time_max_ms: int = 30_000
    max_message_bytes: int = 1_048_588
    segment_bytes: int = 1_073_741_824
    compacted: bool = False
    deletes: bool = True
    compaction: CompactionSettings = CompactionSettings()
    log_append_time: bool = False
    timestamp_before_max_ms: int = NO_LIMIT
    timestamp_after_max_ms: int = 3_600_000
    producer_id_expiration_ms: int = 86_400_000
    compression: Compression | None = None
    """The codec of stored batches (compression.type). None: batches are stored as they were
    sent."""
