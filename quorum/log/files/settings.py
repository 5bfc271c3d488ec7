"""The settings of one log. The names are Kafka's (log.segment.bytes and so on)."""

from __future__ import annotations

from dataclasses import dataclass

UNLIMITED = -1
"""The value of a retention setting without a bound."""
NEVER = 2**63 - 1
"""The value of a flush setting that never lets a log be flushed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    """The settings of one log. The owner may replace them while the log is open; the interval of
    the index and the preallocation then apply to new segments."""

    segment_bytes: int = 1024**3
    segment_ms: int = 7 * 24 * 3600 * 1000
    segment_jitter_ms: int = 0
    """Bound of the random time that is subtracted from `segment_ms` for each segment."""
    preallocate: bool = False
    """True if the file of a new segment gets `segment_bytes` immediately."""
    index_interval_bytes: int = 4096
    index_max_bytes: int = 10 * 1024**2
    """The size of an index at which a new segment begins."""
    retention_bytes: int = UNLIMITED
    retention_ms: int = 7 * 24 * 3600 * 1000
    file_delete_delay_ms: int = 60_000
    """The time after which the owner removes the renamed files of deleted segments."""
    flush_messages: int = NEVER
    """The number of unflushed records with which the owner flushes the log after an append."""
    flush_ms: int = NEVER
    """The time since the last flush after which the owner flushes the log."""
    archive_directory: str = ""
    """The directory that receives segments which retention removes; if empty, they are deleted."""
    flushed_is_acknowledged: bool = False
    """True for the metadata log, because a voter acknowledges records after it has flushed them.

    Such a log keeps a flushed marker and syncs every truncation. It refuses to open if flushed
    bytes are missing or damaged, and also if later bytes are damaged but not torn. The setting is
    False for partitions: their records are acknowledged when every ISR member has them in its page
    cache, before any flush. Such a log refuses to open only for damage below its recovery point."""
