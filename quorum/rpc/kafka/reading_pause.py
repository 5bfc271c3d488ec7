"""The pause during which a connection is not read, for example because its client is throttled.

Of several pauses that overlap, the one that ends last counts. A timer that is due earlier starts
again for the rest of the time.
"""

from __future__ import annotations

from collections.abc import Callable

from quorate.quorum.seams import Clock


class ReadingPause:
    """The pauses of one connection that overlap. `ended` is called once, at the end of the last."""

    __slots__ = ("_clock", "_ended", "_timer", "_until_ms")

    def __init__(self, clock: Clock, delay_ms: int, ended: Callable[[], None]) -> None:
        """Begin a pause of `delay_ms`."""
        self._clock = clock
        self._ended = ended
        self._until_ms = clock.now_ms() + delay_ms
        self._timer = clock.call_later(delay_ms, self._due)

    def extend(self, delay_ms: int) -> None:
        """Pause for at least `delay_ms` from now."""
        self._until_ms = max(self._until_ms, self._clock.now_ms() + delay_ms)

    def cancel(self) -> None:
        """Release the timer, because the connection is closed. `ended` is not called."""
        self._timer.cancel()

    def _due(self) -> None:
        left_ms = self._until_ms - self._clock.now_ms()
        if left_ms > 0:
            self._timer = self._clock.call_later(left_ms, self._due)
        else:
            self._ended()
