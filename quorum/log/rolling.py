"""When the active segment is full and the next one begins: Kafka's rule."""

from __future__ import annotations

from quorate.quorum.log.segment import PositionedBatch, Segment
from quorate.quorum.log.settings import LogSettings


def must_roll(
    segment: Segment, settings: LogSettings, placed: list[PositionedBatch], active_ms: int
) -> bool:
    """Before `placed` is appended: by size, by what an index can say, or by age, in the records'
    time when they have one. `active_ms`: for how long the segment has been active."""
    position, last = placed[-1]
    size_bytes = position + last.size_bytes
    if segment.size + size_bytes > settings.segment_bytes or not segment.fits_indexes(
        last.last_offset
    ):
        return True
    first_ms = segment.first_timestamp_ms
    age_ms = active_ms if first_ms < 0 else last.max_timestamp_ms - first_ms
    return age_ms > settings.segment_ms
