"""Virtual time, deadlocks, and hosts that pause and die."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from tests.sim.world.clock import WALL_EPOCH_MS, SimClock
from tests.sim.world.host import Host
from tests.sim.world.loop import Deadlock, SimLoop


@pytest.fixture
def loop() -> Iterator[SimLoop]:
    loop = SimLoop()
    yield loop
    loop.close()


def test_an_hour_passes_at_once_and_in_order(loop: SimLoop) -> None:
    seen: list[tuple[str, float]] = []

    async def sleeper(name: str, seconds: float) -> None:
        await asyncio.sleep(seconds)
        seen.append((name, loop.time()))

    async def scenario() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(sleeper("long", 3600))
            group.create_task(sleeper("short", 0.25))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(10):
                await asyncio.Event().wait()

    loop.run(scenario())
    assert seen == [("short", 0.25), ("long", 3600.0)]
    assert loop.time() == 3610


def test_waiting_for_what_cannot_happen(loop: SimLoop) -> None:
    with pytest.raises(Deadlock):
        loop.run(asyncio.Event().wait())
    for task in asyncio.all_tasks(loop):
        task.cancel()
    loop.run_for(0)


def test_threads_are_refused(loop: SimLoop) -> None:
    async def scenario() -> None:
        await asyncio.to_thread(print)

    with pytest.raises(AssertionError, match="thread"):
        loop.run(scenario())


def test_a_failed_callback_fails_the_run(loop: SimLoop) -> None:
    def fail() -> None:
        raise ValueError("broken")

    loop.call_later(1, fail)
    with pytest.raises(ValueError, match="broken"):
        loop.run_for(2)
    loop.run_for(1)


def test_a_paused_host_catches_up_when_it_goes_on(loop: SimLoop) -> None:
    host = Host(loop, "a")
    clock = SimClock(host)
    seen: list[str] = []
    clock.call_later(100, lambda: seen.append("first"))
    cancelled = clock.call_later(200, lambda: seen.append("cancelled while held"))
    clock.call_later(300, lambda: seen.append("second"))
    host.pause()
    loop.run_for(1)
    assert seen == []
    cancelled.cancel()
    cancelled.cancel()
    host.resume()
    loop.run_for(0.001)
    assert seen == ["first", "second"]


def test_paused_again_before_it_caught_up(loop: SimLoop) -> None:
    host = Host(loop, "a")
    seen: list[int] = []
    for number in (1, 2):
        host.call_soon(lambda number=number: seen.append(number))  # type: ignore[misc]
    host.pause()
    loop.run_for(1)
    host.resume()
    host.pause()
    loop.run_for(1)
    assert seen == []
    host.resume()
    loop.run_for(1)
    assert seen == [1, 2]


def test_a_dead_host_does_nothing_more(loop: SimLoop) -> None:
    host, other = Host(loop, "a"), Host(loop, "b")
    seen: list[str] = []

    async def child(name: str) -> None:
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            seen.append(f"{name} cancelled")
            raise

    async def parent(name: str) -> None:
        task = asyncio.create_task(child(f"{name}'s child"))
        await task

    tasks = [host.spawn(parent("a")), other.spawn(parent("b"))]
    SimClock(host).call_later(500, lambda: seen.append("timer"))
    loop.run_for(0.1)
    host.kill()
    loop.run_for(1)
    assert sorted(seen) == ["a's child cancelled"]
    loop.run_for(10)
    assert [task.cancelled() for task in tasks] == [True, False]


def test_clocks_differ(loop: SimLoop) -> None:
    host = Host(loop, "a")
    fast = SimClock(host, base_ms=5_000, wall_offset_ms=-70, rate=1.25)
    fired: list[int] = []
    fast.call_later(100, lambda: fired.append(fast.now_ms()))
    loop.run_for(0.4)
    assert fired == [5100]
    assert fast.now_ms() == 5500
    assert fast.wall_ms() == WALL_EPOCH_MS + 400 - 70
