"""The lag of the event loop: the time by which a timer fires too late.

Everything that runs on the loop waits at most about that long for its turn. A timer measures the
lag INTERVAL_MS after the last time. The process of a node starts and closes it.
"""

from __future__ import annotations

from quorate.quorum.histogram import US_PER_MS, Histogram
from quorate.quorum.seams import Clock, Timer

INTERVAL_MS = 500


class LoopLag:
    """Measures the lag of one event loop, on which it runs, from `start` to `close`."""

    def __init__(self, clock: Clock) -> None:
        """Create a measurement that has not started."""
        self.times = Histogram()
        self._clock = clock
        self._timer: Timer | None = None

    def start(self) -> None:
        """Begin to measure."""
        due_us = self._clock.now_us() + INTERVAL_MS * US_PER_MS
        self._timer = self._clock.call_later(INTERVAL_MS, lambda: self._fired(due_us))

    def close(self) -> None:
        """Stop measuring. Do nothing without a `start`."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _fired(self, due_us: int) -> None:
        self.times.observe(max(0, self._clock.now_us() - due_us))
        self.start()
