"""The order in which handshakes continue, in slices of the event loop.

One step of a handshake takes up to two milliseconds of CPU. When 1,000 clients reconnect
simultaneously, their handshakes would otherwise hold the event loop for a second.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from time import perf_counter

SLICE_S = 0.005
"""The time after which the remaining steps wait for the next iteration of the event loop. The last
step may exceed it."""


class Handshakes:
    """The handshake steps that are due, oldest first. The event loop owns it.

    A connection has at most one step here, so that open connections bound the length."""

    def __init__(self) -> None:
        self._due: deque[Callable[[], None]] = deque()
        self._scheduled = False

    def add(self, step: Callable[[], None]) -> None:
        """Run `step` in an iteration of the event loop, after those that were added earlier. It
        must not raise."""
        self._due.append(step)
        self._schedule()

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._run)

    def _run(self) -> None:
        self._scheduled = False
        end_s = perf_counter() + SLICE_S
        while self._due:
            self._due.popleft()()
            if self._due and perf_counter() >= end_s:
                self._schedule()
                return
