"""The rule that decides when a log begins a new active segment (Kafka's)."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b

from quorate.quorum.log.batches.batch import Placed
from quorate.quorum.log.files.settings import LogSettings
from quorate.quorum.log.segments.segment import Segment


def must_roll(segment: Segment, settings: LogSettings, placed: Placed, active_ms: int) -> bool:
    """Return True if an append must begin a new segment before it writes its batches `placed`.

    `segment` is the active segment and has at least one batch. `placed` has at least one, too. The
    result is True in each of these cases:

    - With the batches, the segment would be larger than `segment_bytes`.
    - The segment's indexes cannot hold the last new offset, which is too far from the base offset.
    - An index of the segment has no room for one more entry in `index_max_bytes`.
    - The segment would be older than `segment_ms` minus its jitter. Its age is the largest
      timestamp in the last new batch minus the largest one in the segment's first batch. If the
      first batch has no timestamp, the age is `active_ms`, the time for which the segment has been
      active."""
    position, last = placed[-1]
    size_bytes = position + last.size_bytes
    if (
        segment.size + size_bytes > settings.segment_bytes
        or not segment.fits_indexes(last.last_offset)
        or segment.indexes_are_full(settings.index_max_bytes)
    ):
        return True
    first_ms = segment.first_timestamp_ms
    age_ms = active_ms if first_ms < 0 else last.max_timestamp_ms - first_ms
    return age_ms > settings.segment_ms - segment.roll_jitter_ms


def roll_jitter_ms(settings: LogSettings, seed: Callable[[], str]) -> int:
    """Return the jitter of one segment, in ms: at least 0, and less than both `segment_jitter_ms`
    and `segment_ms`. If one of the two is 0, the jitter is 0.

    It spreads the rolls of logs that began at the same time. Kafka draws it when a segment is
    created. Here it follows from the text that `seed` returns, which differs by process, log and
    segment."""
    bound = min(settings.segment_jitter_ms, settings.segment_ms)
    if bound <= 0:
        return 0
    return int.from_bytes(blake2b(seed().encode(), digest_size=8).digest()) % bound
