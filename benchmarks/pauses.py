"""How long an event loop stands still: a ticker of 1 ms beside some work.

As the clock has it, how late a tick was at worst is the pause that a request would have met; but
others who use the machine are in it, too. The CPU time that the loop's thread took between two
ticks is its own work alone, and what it would be on a quiet machine.
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
    """The longest: as the clock has it; without waits for a core that others had; of CPU time."""

    longest_ms: float = 0.0
    own_ms: float = 0.0
    cpu_ms: float = 0.0

    async def tick(self) -> None:
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
    """For how long this thread was ready and had no core."""
    scheduler.seek(0)
    return int(scheduler.read(MAX_SCHEDSTAT_BYTES).split()[1]) / 1e9


async def ticked(work: Coroutine[None, None, T]) -> tuple[T, Pauses]:
    """What `work` came to, and the pauses meanwhile."""
    pauses = Pauses()
    ticker = asyncio.get_running_loop().create_task(pauses.tick())
    try:
        return await work, pauses
    finally:
        ticker.cancel()
