"""The progress of the clients while faults happen.

A cluster that recovers only after all faults have ended would pass the final checks. In the mild
profiles at most one fault is under way, so the clients must make progress during the faults, too,
in each partition. This does not hold beside crashes and kills that come at any time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.sim.checks.committed_log import Violation
from tests.sim.world.loop import SimLoop

LOOK_S = 0.1
LONGEST_STALL_S = 7.0
"""The longest time without progress of one partition. Two faults of 3 s may follow each other, and
then an election takes about 1 s. A session of 2 s ends during a fault. In 18 seeds of the mild
profiles the longest stall was 4.9 s."""


class Progress:
    """Watches numbers that grow with each success of a client, one for each partition. Create it
    when the clients run.

    `stall_s` is the longest time without growth of one of them so far, in virtual seconds."""

    def __init__(self, loop: SimLoop, counts: Callable[[], Mapping[str, int]]) -> None:
        self.stall_s = 0.0
        self._where = ""
        self._loop = loop
        self._counts = counts
        self._grew: dict[str, tuple[int, float]] = {}
        """The last number and the time at which it grew."""
        self._running = True
        self._look()

    def stop(self) -> None:
        """Look for the last time."""
        self._look()
        self._running = False

    def require(self, longest_s: float = LONGEST_STALL_S) -> None:
        """Raise Violation if one of the numbers did not grow for a longer time."""
        if self.stall_s > longest_s:
            raise Violation(
                f"{self._where}: no progress for {self.stall_s:.1f} s during mild faults"
            )

    def _look(self) -> None:
        if not self._running:
            return
        now_s = self._loop.time()
        for where, count in self._counts().items():
            known, grew_s = self._grew.setdefault(where, (count, now_s))
            if count > known:
                self._grew[where] = count, now_s
            if now_s - grew_s > self.stall_s:
                self.stall_s, self._where = now_s - grew_s, where
        self._loop.call_at(now_s + LOOK_S, self._look)
