"""The figures of the log cleaner that its metrics show, with the names of Kafka's metrics."""

from __future__ import annotations

from dataclasses import dataclass

from quorate.broker.compaction.cleaning import CleaningStats


@dataclass(slots=True)
class CleanerFigures:
    """The figures of one broker. The event loop owns them. Each `max_` is of the last look at all
    logs, and the figures of a cleaning are those of the last one."""

    cleanings: int = 0
    cleaned_bytes: int = 0
    """Bytes read by all cleanings."""
    max_dirty_percent: int = 0
    """The highest share of dirty bytes of all compacted logs."""
    max_compaction_delay_secs: int = 0
    """The longest time by which a log exceeds max.compaction.lag.ms."""
    buffer_utilization_percent: int = 0
    """The share of the map of offsets that the last cleaning used."""
    recopy_percent: int = 0
    """Bytes written for each 100 bytes that the last cleaning read."""
    clean_time_secs: int = 0
    """Duration of the last cleaning."""
    last_run_ms: int = 0
    """The monotonic time of the end of the last cleaning, or of the start of the cleaner."""

    def cleaned(self, stats: CleaningStats, began_ms: int, now_ms: int) -> None:
        """Take the figures of a cleaning that has ended."""
        self.cleanings += 1
        self.cleaned_bytes += stats.read_bytes
        self.buffer_utilization_percent = 100 * stats.keys // stats.capacity
        self.recopy_percent = 100 * stats.written_bytes // max(1, stats.read_bytes)
        self.clean_time_secs = (now_ms - began_ms) // 1000
        self.last_run_ms = now_ms
