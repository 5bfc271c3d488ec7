"""A node's clock and disk while it is paused, and after it crashed."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from quorate.quorum.clock import AsyncioClock
from quorate.quorum.faults.clock import FaultClock
from quorate.quorum.faults.disk import FaultDisk
from quorate.quorum.faults.faults import Faults
from quorate.quorum.log.disks.disk import OsDisk


async def test_timers_that_fell_due_fire_after_the_pause_in_order() -> None:
    faults = Faults()
    clock = FaultClock(AsyncioClock(), faults)
    seen: list[str] = []
    ended = asyncio.Event()
    clock.call_later(6, lambda: seen.append("second"))
    clock.call_later(2, lambda: seen.append("first"))
    cancelled = clock.call_later(3, lambda: seen.append("cancelled"))
    clock.call_soon(lambda: seen.append("soon"))
    before_ms = clock.now_ms()
    faults.pause()
    await asyncio.sleep(0.03)
    assert seen == []
    cancelled.cancel()
    faults.resume()
    clock.call_soon(lambda: seen.append("last"))
    clock.call_soon(ended.set)
    await ended.wait()
    assert seen == ["soon", "first", "second", "last"]
    assert clock.now_ms() - before_ms >= 30


async def test_one_callback_that_fails_does_not_hold_up_the_rest() -> None:
    failures: list[BaseException] = []
    faults = Faults(failures.append)
    clock = FaultClock(AsyncioClock(), faults)
    ended = asyncio.Event()
    faults.pause()
    clock.call_soon(lambda: [][0])
    clock.call_soon(ended.set)
    await asyncio.sleep(0)
    faults.resume()
    await ended.wait()
    assert isinstance(failures[0], IndexError)


async def test_a_callback_may_pause_its_own_node() -> None:
    faults = Faults()
    clock = FaultClock(AsyncioClock(), faults)
    seen: list[int] = []
    faults.pause()
    clock.call_soon(faults.pause)
    clock.call_soon(lambda: seen.append(1))
    await asyncio.sleep(0)
    faults.resume()
    await asyncio.sleep(0.01)
    assert not seen
    faults.resume()
    await asyncio.sleep(0.01)
    assert seen == [1]


async def test_a_crashed_clock_is_silent_and_keeps_no_timers() -> None:
    faults = Faults()
    clock = FaultClock(AsyncioClock(), faults)
    seen: list[str] = []
    clock.call_later(1, lambda: seen.append("later"))
    clock.call_soon(lambda: seen.append("soon"))
    faults.crash()
    clock.call_later(1, lambda: seen.append("a ghost"))
    clock.call_soon(lambda: seen.append("a ghost"))
    await asyncio.sleep(0.01)
    assert not seen and not clock.timers


async def test_what_the_disk_answers_waits_for_the_end_of_a_pause(tmp_path: Path) -> None:
    faults, inner = Faults(), OsDisk()
    disk = FaultDisk(inner, faults)
    answers: list[object] = []
    answered, done = threading.Event(), asyncio.Event()
    disk.submit(answered.set, lambda result, error: answers.append(error))
    faults.pause()
    await asyncio.to_thread(answered.wait)
    await asyncio.sleep(0.01)
    assert not answers
    faults.resume()
    disk.submit(lambda: 7, lambda result, error: done.set())
    await done.wait()
    assert answers == [None]
    inner.close()


async def test_a_crash_closes_files_frees_the_directory_and_drops_what_waits(
    tmp_path: Path,
) -> None:
    faults, inner = Faults(), OsDisk()
    disk = FaultDisk(inner, faults)
    path = str(tmp_path / "log")
    file = disk.open(path, create=True)
    disk.lock(str(tmp_path / ".lock"))
    under_way, go_on = threading.Event(), threading.Event()

    def write() -> None:
        under_way.set()
        go_on.wait()
        file.pwrite(b"too late", 0)

    disk.submit(write, lambda result, error: pytest.fail("the node is dead"))
    disk.submit(lambda: file.pwrite(b"never", 0), lambda *_: pytest.fail("the node is dead"))
    await asyncio.sleep(0)  # the thread gets it when the loop has turned
    under_way.wait()
    threading.Timer(0.01, go_on.set).start()
    faults.crash()
    for attempt in (lambda: file.pread(1, 0), lambda: disk.open(path), lambda: disk.list("/")):
        with pytest.raises(OSError, match="crashed"):
            attempt()
    again = OsDisk()
    again.lock(str(tmp_path / ".lock")).release()
    inner.close()
    assert inner.open_files == 0
    assert again.open(path).size() == 0
    again.close()
