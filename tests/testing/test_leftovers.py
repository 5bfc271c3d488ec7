"""A local cluster leaves no tasks, files or objects in its process after it is closed.

The test is alone in its module, because nothing else may create or release objects meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading

from quorate.testing import LocalCluster


def left() -> str:
    """Describe the tasks, open files and threads of this process."""
    files = []
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # that of the directory itself is closed
            files.append(os.readlink(f"/proc/self/fd/{number}"))
    return f"{asyncio.all_tasks()}\n{sorted(files)}\n{threading.enumerate()}"


async def test_kills_and_the_end_leave_nothing_behind() -> None:
    def held() -> tuple[int, int, int]:
        # The loop keeps the threads that look up addresses, and starts more when it needs them.
        threads = [each for each in threading.enumerate() if not each.name.startswith("asyncio_")]
        return len(asyncio.all_tasks()), len(os.listdir("/proc/self/fd")), len(threads)

    async with LocalCluster():
        pass  # imports modules and opens what each process needs once
    before = held()
    async with LocalCluster(controllers=3, brokers=2) as cluster:
        await cluster.create_topic("orders", partitions=3)
        whole = held()
        victim = await cluster.leader("orders")
        await cluster.partition(victim, cluster.controller_ids, silent=True)
        await cluster.pause(victim)
        await cluster.kill_broker(victim)
        await cluster.heal()
        await cluster.kill_controller()
        assert held()[1] < whole[1]

    def more() -> list[int]:
        return [now - then for now, then in zip(held(), before, strict=True) if now > then]

    for _ in range(1000):  # sockets close in the next iterations of the loop
        if not more():
            break
        await asyncio.sleep(0.01)
    assert not more(), left()
