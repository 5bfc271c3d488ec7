"""The end of a run: its stages, each with a time limit, whose failures become problems of the run.

A broken cluster is the most important verdict. No stage may therefore raise, or take longer than
its limit."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class HasProblems(Protocol):
    """An object that records problems, such as a run."""

    def problem(self, what: str) -> None:
        """Record a problem."""


async def stage(run: HasProblems, name: str, limit_s: float, work: Awaitable[T]) -> T | None:
    """Return the result of the work, or None if it fails or takes longer than `limit_s`.

    Then the reason is a problem of the run. Work in another thread continues after the limit."""
    try:
        async with asyncio.timeout(limit_s):
            return await work
    except TimeoutError:
        run.problem(f"{name}: not within {limit_s:.0f} s")
    except Exception as error:  # a verdict must not be lost, whatever fails
        run.problem(f"{name}: {reason(error)}")
    return None


def reason(error: BaseException) -> str:
    """Return an error as text: its message if it is for people, else also its type."""
    said = str(error)
    known = type(error).__module__.startswith("quorate.") and said
    return said if known else f"{type(error).__name__}: {said}" if said else repr(error)


@dataclass(slots=True)
class Interruption:
    """The signals that ask the run to end: SIGINT, SIGTERM and SIGHUP.

    The first one cancels the work in `guard`. The run then ends all faults and computes a verdict.
    The second one ends the process immediately. Faults end by their leases, and a cluster that the
    process has started ends with it."""

    name: str | None = None
    """The name of the first signal, or None."""
    _work: asyncio.Task[Any] | None = None
    _exit: Callable[[int], object] = field(default=os._exit)

    def install(self, loop: asyncio.AbstractEventLoop) -> None:
        """Handle the signals in this loop."""
        for number in SIGNALS:
            loop.add_signal_handler(number, self.signalled, number)

    def signalled(self, number: signal.Signals) -> None:
        """Take a signal."""
        if self.name is not None:
            self._exit(1)
        self.name = number.name
        if self._work is not None:
            self._work.cancel()

    async def guard(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of the work. Raise Interrupted if a signal arrives, or has arrived."""
        if self.name is not None:
            work.close()
            raise Interrupted(f"interrupted by {self.name}")
        task = asyncio.create_task(work)
        self._work = task
        try:
            return await task
        except asyncio.CancelledError:
            if self.name is None:
                raise
            raise Interrupted(f"interrupted by {self.name}") from None
        finally:
            self._work = None


class Interrupted(Exception):
    """A signal has ended the work. The text names the signal."""
