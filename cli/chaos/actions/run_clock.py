"""The clock of a run."""

from __future__ import annotations

import time
from dataclasses import dataclass, field


@dataclass(slots=True)
class RunClock:
    """The clock of a run: ms since its start, for events of the run and for records of the log."""

    start_s: float = field(default_factory=time.monotonic)
    start_wall_ms: int = field(default_factory=lambda: time.time_ns() // 1_000_000)
    offsets_ms: set[int] = field(default_factory=lambda: {0})
    """The offsets of the nodes' wall clocks that steps have set, with 0."""

    def restart(self) -> None:
        """Let the run start now."""
        self.start_s, self.start_wall_ms = time.monotonic(), time.time_ns() // 1_000_000

    def now_ms(self) -> int:
        """Return the present time in ms since the start."""
        return self.ms(time.monotonic())

    def ms(self, now_s: float) -> int:
        """Return a time of the monotonic clock, in s, as ms since the start, but at least 0."""
        return max(0, round((now_s - self.start_s) * 1000))

    def of_wall(self, wall_ms: int) -> int:
        """Return a wall-clock time in ms as ms since the start, negative if it is before."""
        return wall_ms - self.start_wall_ms
