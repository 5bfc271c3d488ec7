"""The contract of `seams.Clock`, for the real clock on both loops and for the simulated one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
import uvloop

from quorate.quorum.clock import AsyncioClock
from quorate.quorum.faults.clock import FaultClock
from quorate.quorum.faults.faults import Faults
from quorate.quorum.seams import Clock
from tests.sim.world.clock import SimClock
from tests.sim.world.host import Host
from tests.sim.world.loop import SimLoop

LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "asyncio": asyncio.new_event_loop,
    "uvloop": uvloop.new_event_loop,
    "sim": SimLoop,
    "faults": uvloop.new_event_loop,
}


def clock_of(kind: str, loop: asyncio.AbstractEventLoop) -> Clock:
    if isinstance(loop, SimLoop):
        return SimClock(Host(loop, "node"))
    clock = AsyncioClock(loop)
    return FaultClock(clock, Faults()) if kind == "faults" else clock


@pytest.mark.parametrize("kind", LOOPS)
def test_timers_run_in_order_and_not_once_they_are_cancelled(kind: str) -> None:
    loop = LOOPS[kind]()
    clock = clock_of(kind, loop)
    seen: list[str] = []
    ended = loop.create_future()
    started_ms, wall_ms = clock.now_ms(), clock.wall_ms()

    def begin() -> None:
        clock.call_later(20, lambda: ended.set_result(None))
        clock.call_later(10, lambda: seen.append("later"))
        clock.call_later(2, lambda: seen.append("soon after"))
        ran = clock.call_later(1, lambda: ran.cancel())
        cancelled = clock.call_later(5, lambda: seen.append("cancelled"))
        cancelled.cancel()
        cancelled.cancel()
        clock.call_soon(lambda: seen.append("soon"))
        assert seen == [], "never inside the call"

    clock.call_soon(begin)
    loop.run_until_complete(ended)
    assert seen == ["soon", "soon after", "later"]
    assert 19 <= clock.now_ms() - started_ms < 5000
    assert 15 <= clock.wall_ms() - wall_ms < 5000
    loop.close()
