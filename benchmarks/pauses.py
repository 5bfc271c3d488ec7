"""Measures the pauses that some work causes in an event loop. Linux only.

A ticker runs on the same loop and sleeps 1 ms at a time. If the work does not let other tasks run,
the next tick is late. The time that the thread waited for a core comes from
/proc/thread-self/schedstat. On a system without this file, all pauses that `ticked` returns are 0.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from dataclasses import dataclass
from io import FileIO
from typing import TypeVar

TICK_S = 0.001
"""The sleep between two ticks, in s."""
MAX_SCHEDSTAT_BYTES = 100
"""More bytes than the file schedstat has."""

T = TypeVar("T")


@dataclass(slots=True)
class Pauses:
    """The longest pauses, in ms, by three measures. Each may come from another tick."""

    longest_ms: float = 0.0
    """The longest delay of a tick. A request would have waited that long. The delay includes the
    time in which other processes used the cores."""
    own_ms: float = 0.0
    """The longest delay of a tick, minus the time that the thread waited for a core during it."""
    cpu_ms: float = 0.0
    """The most CPU time that the thread used between two ticks. It predicts the pause on an idle
    machine."""

    async def tick(self) -> None:
        """Measure until cancelled. Raise FileNotFoundError on a system without schedstat."""
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
    """Return the total time, in s, that this thread was ready and waited for a core.

    `scheduler` is the open file schedstat of the thread."""
    scheduler.seek(0)
    return int(scheduler.read(MAX_SCHEDSTAT_BYTES).split()[1]) / 1e9


async def ticked(work: Coroutine[None, None, T]) -> tuple[T, Pauses]:
    """Run `work`, and return its result with the longest pauses meanwhile.

    A pause that lasts to the end of `work` is not measured, because no tick follows it."""
    pauses = Pauses()
    ticker = asyncio.get_running_loop().create_task(pauses.tick())
    try:
        return await work, pauses
    finally:
        ticker.cancel()
