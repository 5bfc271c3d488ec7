"""An asyncio event loop on virtual time: real tasks, futures and timers, no sockets and no waiting.

When nothing is ready, time jumps to the next timer. When there is no timer either, everybody
waits for something that cannot happen: Deadlock. Callbacks run first in, first out, as asyncio
documents; what is random is decided at the edges (network, disk, faults). The few private names
of BaseEventLoop that this stands on are those that CPython's own test loops use; they are the
same from 3.11 to 3.14.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from typing import Any, NoReturn, TypeVar

T = TypeVar("T")
CLOCK_RESOLUTION_S = 1e-9  # asyncio spins when it is zero


class Deadlock(Exception):
    """Nothing is ready and no timer is set."""


task_owner: ContextVar[Callable[[asyncio.Task[Any]], None]] = ContextVar("task_owner")
"""Told of each task that is started in its context."""


class SimLoop(asyncio.BaseEventLoop):
    _scheduled: list[asyncio.TimerHandle]

    def __init__(self) -> None:
        super().__init__()
        self._now_s = 0.0
        self.events = 0
        self._selector = _Selector(self)
        self._clock_resolution = CLOCK_RESOLUTION_S
        self.failures: list[BaseException] = []
        self.set_exception_handler(_remember_failure)
        self.set_task_factory(_owned_task)

    def time(self) -> float:
        return self._now_s

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Runs to the end of `coroutine`; raises what failed in a callback or a forgotten task."""
        try:
            return self.run_until_complete(coroutine)
        finally:
            self.raise_failure()

    def run_for(self, seconds: float) -> None:
        self.run(asyncio.sleep(seconds))

    def raise_failure(self) -> None:
        if self.failures:
            raise self.failures.pop(0)

    def jump(self) -> None:
        self._now_s = max(self._now_s, self._scheduled[0].when())

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> NoReturn:  # type: ignore[override]
        raise AssertionError(f"{func} asks for a thread: nondeterministic; use the seams")

    def _process_events(self, event_list: list[Any]) -> None:
        assert not event_list

    def _write_to_self(self) -> None:
        """There is no thread that could wait in the selector."""


class _Selector:
    """`select` is where BaseEventLoop waits."""

    def __init__(self, loop: SimLoop) -> None:
        self._loop = loop

    def select(self, timeout_s: float | None) -> list[Any]:
        if timeout_s is None:
            raise Deadlock("nothing is ready and no timer is set")
        if timeout_s > 0:
            self._loop.jump()
        return []


def _owned_task(loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> Any:
    task: asyncio.Task[Any] = asyncio.Task(coroutine, loop=loop, **options)
    if (own := task_owner.get(None)) is not None:
        own(task)
    return task


def _remember_failure(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    assert isinstance(loop, SimLoop)
    loop.failures.append(context.get("exception") or AssertionError(context["message"]))
