"""A clock under fault rules. While its node is paused, timers that become due wait in order.

The monotonic clock is never changed or stopped. After a pause the node sees that time has passed,
as a process that was stopped does. The wall clock may be wrong (`Rules.clock_offset_ms`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from quorate.quorum.faults.faults import Faults
from quorate.quorum.seams import Clock, Timer


class FaultClock:
    """The clock of one node. The thread of the event loop owns it. `timers` holds the pending
    timers."""

    def __init__(self, inner: Clock, faults: Faults) -> None:
        self.faults = faults
        self.timers: dict[FaultTimer, None] = {}
        self._inner = inner
        faults.watch(self)

    def now_ms(self) -> int:
        """Return the monotonic time in milliseconds."""
        return self._inner.now_ms()

    def now_us(self) -> int:
        """Return the monotonic time in microseconds."""
        return self._inner.now_us()

    def wall_ms(self) -> int:
        """Return the wall time in milliseconds, which is wrong if the rules say so."""
        offset_ms = self.faults.rules.clock_offset_ms
        if offset_ms:
            self.faults.affected["clock_offset_ms"] += 1
        return self._inner.wall_ms() + offset_ms

    def cpu_ms(self) -> float:
        """Return the inner clock's CPU time in milliseconds."""
        return self._inner.cpu_ms()

    def call_later(self, delay_ms: float, callback: Callable[[], None]) -> Timer:
        """Run the callback after `delay_ms`, or after the pause if the node is then paused. If the
        node crashes before, or has crashed, the callback never runs."""
        timer = FaultTimer(self, callback)
        if not self.faults.crashed:
            self.timers[timer] = None
            timer.inner = self._inner.call_later(delay_ms, timer.due)
        return timer

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Run the callback on the next iteration of the loop, under the same rules as
        `call_later`."""
        self._inner.call_soon(partial(self.faults.run, callback))

    def rules_changed(self) -> None:
        """Do nothing: `Faults.run` holds the callbacks while the node is paused."""

    def crash(self) -> None:
        """Cancel all timers."""
        for timer in list(self.timers):
            timer.cancel()


class FaultTimer:
    """A timer that can be cancelled even when it is due and its node is paused."""

    __slots__ = ("_callback", "_clock", "inner")

    def __init__(self, clock: FaultClock, callback: Callable[[], None]) -> None:
        self.inner: Timer | None = None
        self._clock = clock
        self._callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        """Cancel the timer. Do nothing if it has fired."""
        self._callback = None
        self._clock.timers.pop(self, None)
        if self.inner is not None:
            self.inner.cancel()

    def due(self) -> None:
        """Fire now, or after the pause if the node is paused."""
        self._clock.faults.run(self._fire)

    def _fire(self) -> None:
        callback, self._callback = self._callback, None
        self._clock.timers.pop(self, None)
        if callback is not None:
            callback()
