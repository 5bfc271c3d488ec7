"""`seams.Clock` over the running asyncio loop. Timers, and so all decisions, follow its monotonic
time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from quorate.quorum.seams import Timer


class AsyncioClock:
    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self._loop = loop or asyncio.get_running_loop()

    def now_ms(self) -> int:
        return int(self._loop.time() * 1000)

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def cpu_ms(self) -> float:
        return time.thread_time_ns() / 1_000_000

    def call_later(self, delay_ms: float, callback: Callable[[], None]) -> Timer:
        return self._loop.call_later(delay_ms / 1000, callback)

    def call_soon(self, callback: Callable[[], None]) -> None:
        self._loop.call_soon(callback)
