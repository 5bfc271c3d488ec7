"""What an operator can set for one partition, as the rules need it."""

from __future__ import annotations

from dataclasses import dataclass

NO_LIMIT = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSettings:
    """Kafka's topic configs and broker configs of the same names; defaults are Kafka's."""

    min_insync_replicas: int = 1
    replica_lag_time_max_ms: int = 30_000
    max_message_bytes: int = 1_048_588
    compacted: bool = False
    deletes: bool = True  # cleanup.policy says so
    log_append_time: bool = False  # message.timestamp.type
    timestamp_before_max_ms: int = NO_LIMIT
    timestamp_after_max_ms: int = 3_600_000
    producer_id_expiration_ms: int = 86_400_000
