"""The choice of the segments and snapshots that retention removes: Kafka's rules, oldest first."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Protocol

from quorate.quorum.ids import EpochOffset
from quorate.quorum.log.files.settings import UNLIMITED, LogSettings
from quorate.quorum.log.segments.index import NO_TIMESTAMP


class SegmentView(Protocol):
    """The facts about a segment that the rules need; `Segment` satisfies it."""

    @property
    def next_offset(self) -> int:
        """The offset that follows the last record."""

    @property
    def size(self) -> int:
        """Bytes of all batches."""

    @property
    def max_timestamp_ms(self) -> int:
        """The largest timestamp, or NO_TIMESTAMP if there is none."""


def expired_segments(
    segments: Sequence[SegmentView],
    settings: LogSettings,
    *,
    start_offset: int,
    high_watermark: int,
    wall_ms: int,
) -> int:
    """Return the number of the oldest segments that retention removes.

    A removed segment lies below the high watermark and is not empty. In addition it lies below
    `start_offset`, the log start, or its largest timestamp is older than `retention_ms`, or the
    rest of the log still has `retention_bytes`. The count ends at the first segment that stays.
    Kafka uses the modification time of the file for a segment without timestamps; see `_latest_ms`.
    """
    excess_bytes = 0
    if settings.retention_bytes != UNLIMITED:
        excess_bytes = sum(segment.size for segment in segments) - settings.retention_bytes
    latest_ms = NO_TIMESTAMP
    count = 0
    for number, segment in enumerate(segments):
        if segment.next_offset > high_watermark or not segment.size:
            break
        too_old = False
        if settings.retention_ms != UNLIMITED:
            latest_ms = _latest_ms(segments, number, latest_ms)
            too_old = latest_ms != NO_TIMESTAMP and wall_ms - latest_ms > settings.retention_ms
        if not (segment.next_offset <= start_offset or too_old or segment.size <= excess_bytes):
            break
        excess_bytes -= segment.size
        count += 1
    return count


def _latest_ms(segments: Sequence[SegmentView], number: int, before_ms: int) -> int:
    """Return the largest timestamp of a segment.

    If its records have none, return that of the next segment with timestamps, because its records
    are not older; NO_TIMESTAMP if there is no such segment. `before_ms` is the result for the
    previous segment. It holds for all segments without timestamps up to the one that it came from.
    """
    own_ms = segments[number].max_timestamp_ms
    if own_ms != NO_TIMESTAMP:
        return own_ms
    if number and segments[number - 1].max_timestamp_ms == NO_TIMESTAMP:
        return before_ms
    later = (each.max_timestamp_ms for each in islice(segments, number + 1, None))
    return next((each for each in later if each != NO_TIMESTAMP), NO_TIMESTAMP)


def expired_snapshots(
    snapshots: Sequence[tuple[EpochOffset, int, int]],
    log_bytes: int,
    *,
    retention_bytes: int,
    retention_ms: int,
    wall_ms: int,
) -> int:
    """Return the number of the oldest snapshots that retention removes; the latest one always
    stays.

    Each of `snapshots` is (snapshot, bytes, timestamp of its last record), oldest first.
    `log_bytes` is the size of the log. The log below the next snapshot is removed together with a
    snapshot (KIP-630). The result does not count the bytes that this frees, so the rest may be
    smaller than `retention_bytes`. A negative retention means no limit, as in Kafka."""
    excess_bytes = log_bytes + sum(size for _, size, _ in snapshots) - retention_bytes
    count = 0
    for _, size, timestamp_ms in snapshots[:-1]:
        is_excess = retention_bytes >= 0 and excess_bytes > 0
        is_old = 0 <= retention_ms < wall_ms - timestamp_ms
        if not (is_excess or is_old):
            break
        excess_bytes -= size
        count += 1
    return count
