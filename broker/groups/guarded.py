"""Runs the work of one shard, and reports when an exception left the shard's state in doubt.

A group's state is changed in place, by requests, timers and commits. If that work raises something
unexpected, the groups of the shard may be half changed. That must not stop the broker: everything
that was acknowledged is in the log, so the coordinator drops the shard and builds it again.
"""

from __future__ import annotations

from collections.abc import Callable

from quorate.quorum.seams import Clock, Timer
from quorate.quorum.state_in_doubt import StateInDoubt


class Guard:
    def __init__(self, on_doubt: Callable[[Exception], None]) -> None:
        """`on_doubt` is called with each unexpected exception."""
        self._on_doubt = on_doubt

    def run(self, work: Callable[[], None]) -> None:
        """Run `work`. Report what it raises, except StateInDoubt, which stops the node."""
        try:
            work()
        except StateInDoubt:
            raise
        except Exception as error:
            self._on_doubt(error)


class GuardedClock:
    """The clock of one shard: its timers run under the guard."""

    def __init__(self, clock: Clock, guard: Guard) -> None:
        self._clock = clock
        self._guard = guard

    def now_ms(self) -> int:
        return self._clock.now_ms()

    def wall_ms(self) -> int:
        return self._clock.wall_ms()

    def cpu_ms(self) -> float:
        return self._clock.cpu_ms()

    def call_later(self, delay_ms: float, callback: Callable[[], None]) -> Timer:
        return self._clock.call_later(delay_ms, lambda: self._guard.run(callback))

    def call_soon(self, callback: Callable[[], None]) -> None:
        self._clock.call_soon(lambda: self._guard.run(callback))
