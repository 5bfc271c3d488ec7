"""The logs that end with times which have not come yet, because a controller's clock is fast.

A step back is visible in the log, because a later record has an earlier time. The last controller
has no later record. But a record is written before the last change of its file, and before it is
read. A last record that is later than one of these by more than TOLERANCE_MS has a wrong time.

A copy that sets the time of a file back to one before its last append would be blamed on the clock.
rsync, cp and tar set no such time.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from quorate.quorum.analytics.log.files import modified_ms, parent_of
from quorate.quorum.analytics.log.seek import last_batch
from quorate.quorum.analytics.log.segments import SEGMENT_NAME, Slice, files_named

TOLERANCE_MS = 60_000
"""The difference between the clocks of two machines that is not reported."""


def now_ms() -> int:
    """Return the time of this machine's clock, in ms since 1970."""
    return time.time_ns() // 1_000_000


def latest_times(slices: Iterable[Slice]) -> dict[str, int]:
    """Return the latest possible time of a record, in ms since 1970, for each cluster whose log
    ends with a later time. Block.

    The slices are those of one log for each cluster."""
    directories = {
        piece.origin.cluster_id: parent_of(piece.path) for piece in slices if not piece.snapshot
    }
    found: dict[str, int] = {}
    for cluster_id, directory in directories.items():
        segments = files_named(directory, SEGMENT_NAME)
        if not segments:
            continue
        changed_ms, read_ms = modified_ms(segments[-1].path), now_ms()
        latest = read_ms if changed_ms is None else min(changed_ms, read_ms)
        last = last_batch(directory)
        if last is not None and last.max_timestamp_ms > latest + TOLERANCE_MS:
            found[cluster_id] = latest
    return found
