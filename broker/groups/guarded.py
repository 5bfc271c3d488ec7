"""Runs the work of one shard, and reports exceptions that leave the state of the shard in doubt.

Requests, timers and commits change a group in place. If such work raises an unexpected exception,
groups of the shard may be changed in part. The exception must not stop the broker. Everything that
was acknowledged is in the log, so the coordinator drops the shard and loads it again.
"""

from __future__ import annotations

from collections.abc import Callable

from quorate.quorum.seams import Clock, Timer
from quorate.quorum.state_in_doubt import StateInDoubt


class Guard:
    """Reports the unexpected exceptions of one shard's work."""

    def __init__(self, on_doubt: Callable[[Exception], None]) -> None:
        """`on_doubt` is called with each unexpected exception."""
        self._on_doubt = on_doubt
        self.closed = False
        """True after the shard was dropped. The timers of its GuardedClock then do nothing, but
        `run` still runs work."""

    def run(self, work: Callable[[], None]) -> None:
        """Run `work`. Report what it raises, except StateInDoubt, which stops the node."""
        try:
            work()
        except StateInDoubt:
            raise
        except Exception as error:
            self._on_doubt(error)


class GuardedClock:
    """The clock of one shard. Its timers run under the guard, and do nothing after the shard was
    dropped."""

    def __init__(self, clock: Clock, guard: Guard) -> None:
        self._clock = clock
        self._guard = guard

    def now_ms(self) -> int:
        """Return the monotonic time in ms."""
        return self._clock.now_ms()

    def now_us(self) -> int:
        """Return the monotonic time in us."""
        return self._clock.now_us()

    def wall_ms(self) -> int:
        """Return the wall-clock time in ms since 1970."""
        return self._clock.wall_ms()

    def cpu_ms(self) -> float:
        """Return the CPU time in ms, as the underlying clock does."""
        return self._clock.cpu_ms()

    def call_later(self, delay_ms: float, callback: Callable[[], None]) -> Timer:
        """Call `callback` under the guard after `delay_ms`, and return the timer."""
        return self._clock.call_later(delay_ms, lambda: self._run(callback))

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Call `callback` under the guard in the next iteration of the event loop."""
        self._clock.call_soon(lambda: self._run(callback))

    def _run(self, callback: Callable[[], None]) -> None:
        if not self._guard.closed:
            self._guard.run(callback)
