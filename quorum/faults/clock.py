"""A clock whose node may stand still: time goes on without it, timers that fall due wait in order.

`now_ms` is not bent: after a pause the node sees the monotonic clock jump, as a process that was
stopped does.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from quorate.quorum.faults.faults import Faults
from quorate.quorum.seams import Clock, Timer


class FaultClock:
    def __init__(self, inner: Clock, faults: Faults) -> None:
        self.faults = faults
        self.timers: dict[FaultTimer, None] = {}
        self._inner = inner
        faults.watch(self)

    def now_ms(self) -> int:
        return self._inner.now_ms()

    def wall_ms(self) -> int:
        return self._inner.wall_ms()

    def cpu_ms(self) -> float:
        return self._inner.cpu_ms()

    def call_later(self, delay_ms: float, callback: Callable[[], None]) -> Timer:
        timer = FaultTimer(self, callback)
        if not self.faults.crashed:
            self.timers[timer] = None
            timer.inner = self._inner.call_later(delay_ms, timer.due)
        return timer

    def call_soon(self, callback: Callable[[], None]) -> None:
        self._inner.call_soon(partial(self.faults.run, callback))

    def rules_changed(self) -> None: ...

    def crash(self) -> None:
        for timer in list(self.timers):
            timer.cancel()


class FaultTimer:
    """Can still be cancelled when it is due but held, because its node is paused."""

    __slots__ = ("_callback", "_clock", "inner")

    def __init__(self, clock: FaultClock, callback: Callable[[], None]) -> None:
        self.inner: Timer | None = None
        self._clock = clock
        self._callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self._callback = None
        self._clock.timers.pop(self, None)
        if self.inner is not None:
            self.inner.cancel()

    def due(self) -> None:
        self._clock.faults.run(self._fire)

    def _fire(self) -> None:
        callback, self._callback = self._callback, None
        self._clock.timers.pop(self, None)
        if callback is not None:
            callback()
