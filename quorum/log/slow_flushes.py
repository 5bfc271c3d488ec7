"""The log line about a flush that takes long.

The disk may be slow, or its thread may have had other work. The histograms of flush times count
such a flush, but do not name the log.
"""

from __future__ import annotations

import logging

from quorate.quorum.log_limit import LogLimit
from quorate.quorum.seams import Clock

SLOW_FLUSH_MS = 1000
"""The time, in ms, from the submission of a flush to its end, from which a line is logged."""

logger = logging.getLogger("quorate.disk")


class SlowFlushes:
    """The lines about the slow flushes of one disk. Owned by the event loop of its node."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lines = LogLimit(clock)

    def ended(self, path: str, begun_us: int) -> int:
        """Return the time since `begun_us` in us. Log it if the flush of `path` was slow."""
        took_us = self._clock.now_us() - begun_us
        if took_us >= SLOW_FLUSH_MS * 1000:
            left_out = self._lines.passes("slow flush")
            if left_out is not None:
                logger.warning(
                    "the flush of %s took %d ms: the disk is slow or busy, and everything that "
                    "waits for its flushes is late. Check its load and its health%s",
                    path,
                    took_us // 1000,
                    left_out,
                    extra={"event": "slow-flush"},
                )
        return took_us
