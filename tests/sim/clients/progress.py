"""The progress of the clients while faults happen.

A cluster that recovers only after all faults have ended would pass the final checks. In the mild
profiles at most one fault is under way, so the clients must make progress during the faults, too.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.sim.checks.committed_log import Violation
from tests.sim.world.loop import SimLoop

LOOK_S = 0.1
LONGEST_STALL_S = 8.0
"""The longest stall that is allowed. A fault lasts 3 s at most, a session 2 s, an election about 1
s, and one fault may follow another closely."""


class Progress:
    """Watches a number that grows with each success of a client. Create it when the clients run.

    `stall_s` is the longest time without growth so far, in virtual seconds."""

    def __init__(self, loop: SimLoop, count: Callable[[], int]) -> None:
        self.stall_s = 0.0
        self._loop = loop
        self._count = count
        self._known = count()
        self._grew_s = loop.time()
        self._running = True
        self._look()

    def stop(self) -> None:
        """Look for the last time."""
        self._look()
        self._running = False

    def require(self, longest_s: float = LONGEST_STALL_S) -> None:
        """Raise Violation if the number did not grow for a longer time."""
        if self.stall_s > longest_s:
            raise Violation(f"no progress for {self.stall_s:.1f} s during mild faults")

    def _look(self) -> None:
        if not self._running:
            return
        now_s, count = self._loop.time(), self._count()
        if count > self._known:
            self._known, self._grew_s = count, now_s
        self.stall_s = max(self.stall_s, now_s - self._grew_s)
        self._loop.call_at(now_s + LOOK_S, self._look)
