"""The rule that decides when a log begins a new active segment (Kafka's)."""

from __future__ import annotations

from quorate.quorum.log.segment import PositionedBatch, Segment
from quorate.quorum.log.settings import LogSettings


def must_roll(
    segment: Segment, settings: LogSettings, placed: list[PositionedBatch], active_ms: int
) -> bool:
    """Return True if the batches `placed`, at least one, belong into a new segment.

    The reasons are the size of the segment, the range of its index, and its age. The age counts
    from the timestamp of its first batch to that of the last batch in `placed`. If the first batch
    has no timestamp, the age is `active_ms`, the time for which the segment has been active."""
    position, last = placed[-1]
    size_bytes = position + last.size_bytes
    if segment.size + size_bytes > settings.segment_bytes or not segment.fits_indexes(
        last.last_offset
    ):
        return True
    first_ms = segment.first_timestamp_ms
    age_ms = active_ms if first_ms < 0 else last.max_timestamp_ms - first_ms
    return age_ms > settings.segment_ms
