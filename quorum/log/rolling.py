"""The rule that decides when a log begins a new active segment (Kafka's)."""

from __future__ import annotations

from quorate.quorum.log.segment import PositionedBatch, Segment
from quorate.quorum.log.settings import LogSettings


def must_roll(
    segment: Segment, settings: LogSettings, placed: list[PositionedBatch], active_ms: int
) -> bool:
    """Return True if an append must begin a new segment before it writes its batches `placed`.

    `segment` is the active segment and has at least one batch. `placed` has at least one, too. The
    result is True in these cases:

    - With the batches, the segment would be larger than `segment_bytes`.
    - The segment's indexes cannot hold the last new offset, which is too far from the base offset.
    - The segment would be older than `segment_ms`. Its age is the largest timestamp of the last new
      batch minus that of the segment's first batch. If the first batch has no timestamp, the age is
      `active_ms`, the time for which the segment has been active."""
    position, last = placed[-1]
    size_bytes = position + last.size_bytes
    if segment.size + size_bytes > settings.segment_bytes or not segment.fits_indexes(
        last.last_offset
    ):
        return True
    first_ms = segment.first_timestamp_ms
    age_ms = active_ms if first_ms < 0 else last.max_timestamp_ms - first_ms
    return age_ms > settings.segment_ms
