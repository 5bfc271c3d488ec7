"""What can be set for one log; the names are Kafka's (log.segment.bytes ...)."""

from __future__ import annotations

from dataclasses import dataclass

UNLIMITED = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    segment_bytes: int = 1024**3
    segment_ms: int = 7 * 24 * 3600 * 1000
    index_interval_bytes: int = 4096
    retention_bytes: int = UNLIMITED
    retention_ms: int = 7 * 24 * 3600 * 1000
    archive_directory: str = ""
    """Where segments go that retention lets go of; they are deleted when it is empty."""
    flushed_is_acknowledged: bool = False
    """The metadata log: what was synced may have been acknowledged for good. Such a log keeps a
    marker of what it flushed, truncates durably, and refuses to start when flushed bytes are gone
    or damaged. Partitions are acknowledged from the page caches of their ISR instead."""
