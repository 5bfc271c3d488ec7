"""The virtual time of a rehearsal: events in order, and sentences about what happened."""

from __future__ import annotations

import heapq
from collections.abc import Callable

from quorate.quorum.controller.state.sessions import NEVER_MS

MAX_EVENTS = 10_000
"""The maximum number of sentences of a run. Later ones are left out."""


class Timeline:
    """The events of one run. Times are in ms since its beginning, and those of `told` in ms since
    the first fault."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.told: list[tuple[int, str]] = []
        self.fault_ms = 0
        """The time of the first fault."""
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._scheduled = 0

    def after(self, delay_ms: int, action: Callable[[], None]) -> None:
        """Run `action` after a time in ms. Actions of the same time keep their order."""
        self._scheduled += 1
        heapq.heappush(self._queue, (self.now_ms + delay_ms, self._scheduled, action))

    def next_ms(self) -> int:
        """Return the time of the next action, or NEVER_MS."""
        return self._queue[0][0] if self._queue else NEVER_MS

    def run_next(self) -> None:
        """Go on to the next action and run it."""
        at_ms, _, action = heapq.heappop(self._queue)
        self.now_ms = max(self.now_ms, at_ms)
        action()

    def tell(self, text: str) -> None:
        """Note a sentence for people."""
        if len(self.told) < MAX_EVENTS:
            self.told.append((self.now_ms - self.fault_ms, text))
