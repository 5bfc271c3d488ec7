"""The settings of one log. The names are Kafka's (log.segment.bytes and so on)."""

from __future__ import annotations

from dataclasses import dataclass

UNLIMITED = -1
"""The value of a retention setting without a bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    """The settings of one log, which do not change while it is open."""

    segment_bytes: int = 1024**3
    segment_ms: int = 7 * 24 * 3600 * 1000
    index_interval_bytes: int = 4096
    retention_bytes: int = UNLIMITED
    retention_ms: int = 7 * 24 * 3600 * 1000
    archive_directory: str = ""
    """The directory that receives segments which retention removes; if empty, they are deleted."""
    flushed_is_acknowledged: bool = False
    """True for the metadata log, because a voter acknowledges records after it has flushed them.

    Such a log keeps a flushed marker and syncs every truncation. It refuses to open if flushed
    bytes are missing or damaged, and also if later bytes are damaged but not torn. The setting is
    False for partitions: their records are acknowledged when every ISR member has them in its page
    cache, before any flush. Such a log refuses to open only for damage below its recovery point."""
