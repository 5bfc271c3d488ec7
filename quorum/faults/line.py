"""One direction of a link under fault rules. Frames pass, wait for the rules, or are late.

Order is preserved: queued frames precede later ones."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from quorate.quorum.faults.faults import Callback


@dataclass(frozen=True, slots=True)
class Way:
    """The rules for one direction of one link, each as a function of the rules in force.

    `holds` returns the name of the rule that holds the direction, or "". `delay_ms` and
    `bytes_per_s` are 0 without a rule."""

    holds: Callable[[], str]
    delay_ms: Callable[[], int]
    bytes_per_s: Callable[[], int]


class Line:
    """One direction of a link. A frame is a callable that passes it on. It is called immediately if
    no rule stops it.

    The thread of the event loop owns the object. `queued_bytes` is the size of the queued frames.
    A frame of a slow line passes when its last byte has arrived.
    """

    def __init__(self, way: Way, affected: dict[str, int]) -> None:
        self.queued_bytes = 0
        self._affected = affected
        self._way = way
        self._queue: deque[tuple[float, int, Callback]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_s = 0.0
        """The time of the timer. uvloop's timers of less than a millisecond do not have it."""
        self._free_s = 0.0
        """The time at which the line has carried the last frame that passed."""

    def put(self, act: Callback, size_bytes: int = 0) -> None:
        """Pass the frame on, or queue it behind the others if it is held, delayed or slow."""
        delay_ms, held = self._way.delay_ms(), self._way.holds()
        slow = self._way.bytes_per_s() > 0 and size_bytes > 0
        if not delay_ms and not self._queue and not held and not slow:
            return act()
        if held:
            self._affected[held] += 1
        self._affected["delay_ms"] += delay_ms > 0
        self._affected["bytes_per_s"] += slow
        due_s = asyncio.get_running_loop().time() + delay_ms / 1000
        self._queue.append((due_s, size_bytes, act))
        self.queued_bytes += size_bytes
        return self.go_on()

    def go_on(self) -> None:
        """Pass on all queued frames that are due and not held. Start a timer for the next one."""
        loop = asyncio.get_running_loop()
        while self._queue and not self._way.holds():
            due_s, size_bytes, act = self._queue[0]
            rate = self._way.bytes_per_s()
            if rate and size_bytes:
                due_s = max(due_s, self._free_s) + size_bytes / rate
            if due_s > loop.time():
                self._restart_timer(due_s)
                return
            self._queue.popleft()
            self.queued_bytes -= size_bytes
            self._free_s = due_s
            act()

    def clear(self) -> None:
        """Discard all queued frames."""
        self._queue.clear()
        self.queued_bytes = 0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _restart_timer(self, due_s: float) -> None:
        """Wait until `due_s`. A timer for another time is replaced, because the rules changed."""
        if self._timer is not None:
            if self._timer_s == due_s:
                return
            self._timer.cancel()
        self._timer_s = due_s
        self._timer = asyncio.get_running_loop().call_at(due_s, self._due)

    def _due(self) -> None:
        self._timer = None
        self.go_on()
