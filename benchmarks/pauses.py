"""Measures pauses of an event loop with a ticker of 1 ms that runs concurrently with some work.

By the clock, the greatest delay of a tick is the pause that a request would have met. It includes
the time that other processes used the cores. The CPU time of the loop's thread between two ticks is
only its own work, and predicts the pause on an idle machine. The times come from Linux's /proc.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from dataclasses import dataclass
from io import FileIO
from typing import TypeVar

TICK_S = 0.001
MAX_SCHEDSTAT_BYTES = 100

T = TypeVar("T")


@dataclass(slots=True)
class Pauses:
    """The longest pauses in ms: by the clock, without waits for a core, and in CPU time."""

    longest_ms: float = 0.0
    own_ms: float = 0.0
    cpu_ms: float = 0.0

    async def tick(self) -> None:
        """Measure until cancelled."""
        with FileIO("/proc/thread-self/schedstat") as scheduler:
            while True:
                begin_s, begin_waited_s = time.perf_counter(), waited_s(scheduler)
                begin_cpu_s = time.thread_time()
                await asyncio.sleep(TICK_S)
                late_s = time.perf_counter() - begin_s - TICK_S
                self.cpu_ms = max(self.cpu_ms, (time.thread_time() - begin_cpu_s) * 1000)
                self.longest_ms = max(self.longest_ms, late_s * 1000)
                own_s = late_s - (waited_s(scheduler) - begin_waited_s)
                self.own_ms = max(self.own_ms, own_s * 1000)


def waited_s(scheduler: FileIO) -> float:
    """Return the total time in seconds that this thread was ready and waited for a core."""
    scheduler.seek(0)
    return int(scheduler.read(MAX_SCHEDSTAT_BYTES).split()[1]) / 1e9


async def ticked(work: Coroutine[None, None, T]) -> tuple[T, Pauses]:
    """Run `work`, and return its result with the pauses meanwhile."""
    pauses = Pauses()
    ticker = asyncio.get_running_loop().create_task(pauses.tick())
    try:
        return await work, pauses
    finally:
        ticker.cancel()
