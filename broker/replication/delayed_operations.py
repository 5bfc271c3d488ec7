"""Operations that wait: for the high watermark, for bytes, or until their time is over.

Nothing polls. What an operation waits for wakes it; woken operations run once, at the end of the
loop iteration, so that many appends of one iteration cost one answer. One timer serves all
deadlines, rounded up to whole ticks: ending an operation early costs one dictionary delete.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Protocol

from quorate.quorum.seams import Clock, Timer

TICK_MS = 10
MAX_TIMEOUT_MS = 600_000
"""The longest time that an operation waits. Clients may ask for 24 days, but a connection whose
client has gone may only be noticed when the response is written."""
MAX_EMPTY_TICKS = 256  # beyond as many as there are ticks with operations


class Waiting(Protocol):
    def expire(self) -> None:
        """The deadline is over. Only called while the operation is in `DelayedOperations`."""


class DelayedOperations:
    """Waiting operations by deadline.

    Invariant: what is kept is proportional to the operations that wait. Clients choose the
    timeouts, so a removed operation must leave nothing until its deadline, which may be weeks away.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ticks: dict[int, dict[Waiting, None]] = {}
        self._order: list[int] = []  # a heap; it may name ticks that are no longer there
        self._timer: Timer | None = None
        self._timer_tick = 0

    def add(self, waiting: Waiting, timeout_ms: int) -> int:
        """Let `waiting` expire after `timeout_ms`, or MAX_TIMEOUT_MS if that is less. Return the
        tick to hand to `remove`."""
        tick = -(-(self._clock.now_ms() + min(timeout_ms, MAX_TIMEOUT_MS)) // TICK_MS)
        due = self._ticks.get(tick)
        if due is None:
            due = self._ticks[tick] = {}
            heapq.heappush(self._order, tick)
        due[waiting] = None
        if self._timer is None or tick < self._timer_tick:
            self._watch(tick)
        return tick

    def remove(self, waiting: Waiting, tick: int) -> None:
        due = self._ticks.get(tick)
        if due is not None:
            due.pop(waiting, None)
            if not due:
                del self._ticks[tick]
                if len(self._order) > 2 * len(self._ticks) + MAX_EMPTY_TICKS:
                    self._order = sorted(self._ticks)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._ticks.clear()
        self._order.clear()

    def __len__(self) -> int:
        return sum(map(len, self._ticks.values()))

    @property
    def kept(self) -> int:
        """The number of entries of all containers, for tests: bounded by the operations."""
        return len(self) + len(self._ticks) + len(self._order)

    def _watch(self, tick: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_tick = tick
        delay_ms = max(0, tick * TICK_MS - self._clock.now_ms())
        self._timer = self._clock.call_later(delay_ms, self._sweep)

    def _sweep(self) -> None:
        self._timer = None
        now_ms = self._clock.now_ms()
        while self._order and self._order[0] * TICK_MS <= now_ms:
            tick = heapq.heappop(self._order)
            while due := self._ticks.get(tick):  # an operation that expires may remove others
                waiting = next(iter(due))
                del due[waiting]
                if not due:
                    del self._ticks[tick]
                waiting.expire()
        if self._order and self._timer is None:
            self._watch(self._order[0])


class CoalescedCallbacks:
    """Callbacks to run once each, in order of their first wake, after the current callback."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._woken: dict[Callable[[], None], None] = {}

    def wake(self, callback: Callable[[], None]) -> None:
        if not self._woken:
            self._clock.call_soon(self._run)
        self._woken[callback] = None

    def _run(self) -> None:
        woken, self._woken = self._woken, {}
        for callback in woken:
            callback()
