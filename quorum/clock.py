"""The clock of a real node, over the running asyncio event loop.

Monotonic time and timers are those of the loop.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from quorate.quorum.seams import Timer


class AsyncioClock:
    """Implements `seams.Clock`. It belongs to one event loop and its thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        """`loop` is the running loop by default."""
        self._loop = loop or asyncio.get_running_loop()

    def now_ms(self) -> int:
        """Return the monotonic time of the loop in ms."""
        return int(self._loop.time() * 1000)

    def now_us(self) -> int:
        """Return the monotonic time in us. Both loops use the same clock of the OS."""
        return time.monotonic_ns() // 1000

    def wall_ms(self) -> int:
        """Return the time in ms since 1970 UTC."""
        return time.time_ns() // 1_000_000

    def cpu_ms(self) -> float:
        """Return the CPU time of the calling thread in ms."""
        return time.thread_time_ns() / 1_000_000

    def call_later(self, delay_ms: float, callback: Callable[[], None]) -> Timer:
        """Call `callback` on the loop after `delay_ms`."""
        return self._loop.call_later(delay_ms / 1000, callback)

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Call `callback` in the next iteration of the loop."""
        self._loop.call_soon(callback)
