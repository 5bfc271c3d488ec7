"""Requests that wait for an event or for the end of their timeout (Kafka's purgatory).

Nothing polls. The event that a request waits for wakes it. Woken fetches run once, at the end of
the loop iteration (`CoalescedCallbacks`), so that many appends in one iteration cost one answer.
One timer serves all timeouts, rounded up to ticks of TICK_MS. The removal of a request costs one
dictionary access.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable
from typing import Protocol

from quorate.quorum.seams import Clock, Timer

TICK_MS = 10
MAX_TIMEOUT_MS = 600_000
"""The longest wait of a request. A client may ask for 24 days, but the broker may only notice that
its connection is gone when it writes the response."""
MAX_EMPTY_TICKS = 256
"""Maximum number of entries of the heap of ticks, beyond twice the number of ticks with
requests."""


class DelayedOperation(Protocol):
    """A request with a timeout."""

    def expire(self) -> None:
        """End the wait, because the timeout is over. Called only while the request is in
        `DelayedOperations`."""


class DelayedOperations:
    """The waiting requests of one broker by timeout. The event loop owns it.

    Invariant: the memory is proportional to the waiting requests. Clients choose the timeouts, so a
    removed request must leave nothing until its timeout, which may be minutes away."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ticks: dict[int, dict[DelayedOperation, None]] = {}
        self._order: list[int] = []  # a heap, with some ticks that have no request any more
        self._timer: Timer | None = None
        self._timer_tick = 0

    def add(self, waiting: DelayedOperation, timeout_ms: int) -> int:
        """Let `waiting` expire after `timeout_ms`, or after MAX_TIMEOUT_MS if that is less. Return
        the tick that `remove` needs."""
        tick = -(-(self._clock.now_ms() + min(timeout_ms, MAX_TIMEOUT_MS)) // TICK_MS)
        due = self._ticks.get(tick)
        if due is None:
            due = self._ticks[tick] = {}
            heapq.heappush(self._order, tick)
        due[waiting] = None
        if self._timer is None or tick < self._timer_tick:
            self._watch(tick)
        return tick

    def remove(self, waiting: DelayedOperation, tick: int) -> None:
        """Remove a request, whose tick `add` has returned. Ignore one that is not there."""
        due = self._ticks.get(tick)
        if due is not None:
            due.pop(waiting, None)
            if not due:
                del self._ticks[tick]
                if len(self._order) > 2 * len(self._ticks) + MAX_EMPTY_TICKS:
                    self._order = sorted(self._ticks)

    def close(self) -> None:
        """Remove all requests without calling `expire`."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._ticks.clear()
        self._order.clear()

    def sizes(self) -> Counter[str]:
        """Return the number of waiting requests by the name of their class."""
        return Counter(type(each).__name__ for due in self._ticks.values() for each in due)

    def __len__(self) -> int:
        return sum(map(len, self._ticks.values()))

    @property
    def kept(self) -> int:
        """Return the number of entries in all containers, for tests."""
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
            while due := self._ticks.get(tick):  # a request that expires may remove others
                waiting = next(iter(due))
                del due[waiting]
                if not due:
                    del self._ticks[tick]
                waiting.expire()
        if self._order and self._timer is None:
            self._watch(self._order[0])


class CoalescedCallbacks:
    """Callbacks that run once each at the end of the loop iteration (`Clock.call_soon`), in the
    order of their first wake. Equal bound methods are one callback."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._woken: dict[Callable[[], None], None] = {}

    def wake(self, callback: Callable[[], None]) -> None:
        """Run `callback` at the end of this loop iteration, once, however often this is called."""
        if not self._woken:
            self._clock.call_soon(self._run)
        self._woken[callback] = None

    def _run(self) -> None:
        woken, self._woken = self._woken, {}
        for callback in woken:
            callback()
