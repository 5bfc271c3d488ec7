"""Which segments, and which snapshots of the metadata log, retention lets go of: Kafka's rules, as
a choice over the oldest ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from quorate.quorum.ids import EpochOffset
from quorate.quorum.log.settings import UNLIMITED, LogSettings


class SegmentView(Protocol):
    @property
    def next_offset(self) -> int: ...

    @property
    def size(self) -> int: ...

    @property
    def max_timestamp_ms(self) -> int: ...


def expired_segments(
    segments: Sequence[SegmentView],
    settings: LogSettings,
    *,
    start_offset: int,
    high_watermark: int,
    wall_ms: int,
) -> int:
    """How many of the oldest segments may go: they lie below the high watermark, and below the
    log's start, or are older than `retention_ms`, or beyond `retention_bytes`. An empty one
    stays."""
    excess_bytes = 0
    if settings.retention_bytes != UNLIMITED:
        excess_bytes = sum(segment.size for segment in segments) - settings.retention_bytes
    count = 0
    for segment in segments:
        if segment.next_offset > high_watermark or not segment.size:
            break
        too_old = (
            settings.retention_ms != UNLIMITED
            and wall_ms - segment.max_timestamp_ms > settings.retention_ms
        )
        if not (segment.next_offset <= start_offset or too_old or segment.size <= excess_bytes):
            break
        excess_bytes -= segment.size
        count += 1
    return count


def expired_snapshots(
    snapshots: Sequence[tuple[EpochOffset, int, int]],
    log_bytes: int,
    *,
    retention_bytes: int,
    retention_ms: int,
    wall_ms: int,
) -> int:
    """How many of the oldest may go; each is (snapshot, bytes, time of its last record). One always
    stays, and with a snapshot goes the log below the next one (KIP-630)."""
    excess_bytes = log_bytes + sum(size for _, size, _ in snapshots) - retention_bytes
    count = 0
    for _, size, timestamp_ms in snapshots[:-1]:
        is_excess = retention_bytes != UNLIMITED and excess_bytes > 0
        is_old = retention_ms != UNLIMITED and wall_ms - timestamp_ms > retention_ms
        if not (is_excess or is_old):
            break
        excess_bytes -= size
        count += 1
    return count
