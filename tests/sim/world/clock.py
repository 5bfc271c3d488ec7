"""The Clock seam of a simulated node, with its own wall clock and drift."""

from __future__ import annotations

from collections.abc import Callable

from tests.sim.world.host import Host
from tests.sim.world.loop import Call

WALL_EPOCH_MS = 1_700_000_000_000


class SimClock:
    """The clock of one simulated node. A `rate` of 1.01 makes it run one percent fast. A fault may
    change `wall_offset_ms` at any time, because real wall clocks step, too."""

    def __init__(
        self, host: Host, *, base_ms: int = 0, wall_offset_ms: int = 0, rate: float = 1.0
    ) -> None:
        self.wall_offset_ms = wall_offset_ms
        self._host = host
        self._loop = host.loop
        self._base_ms = base_ms
        self._rate = rate
        self.cpu_step_ms = 0.0
        self._cpu_ms = 0.0

    def now_ms(self) -> int:
        return self._base_ms + int(self._loop.now_s * 1000 * self._rate)

    def now_us(self) -> int:
        return self._base_ms * 1000 + int(self._loop.now_s * 1_000_000 * self._rate)

    def wall_ms(self) -> int:
        return WALL_EPOCH_MS + int(self._loop.now_s * 1000) + self.wall_offset_ms

    def cpu_ms(self) -> float:
        """Return the CPU time, which is 0 because work takes no virtual time. Slices of long work
        therefore end after a number of steps. With `cpu_step_ms`, each call costs that much CPU."""
        self._cpu_ms += self.cpu_step_ms
        return self._cpu_ms

    def call_later(self, delay_ms: float, callback: Callable[[], None]) -> SimTimer:
        timer = SimTimer(callback)
        when_s = self._loop.now_s + delay_ms / 1000 / self._rate
        timer.call = self._host.call_at(when_s, timer.run)
        return timer

    def call_soon(self, callback: Callable[[], None]) -> None:
        self._host.call_soon(callback)


class SimTimer:
    """A timer that can still be cancelled after it is due, as long as its paused host holds the
    callback back."""

    call: Call

    def __init__(self, callback: Callable[[], None]) -> None:
        self._callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self._callback = None
        self.call.cancel()

    def run(self) -> None:
        callback, self._callback = self._callback, None
        if callback is not None:
            callback()
