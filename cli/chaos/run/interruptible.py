"""The end of a run by a signal, and the removal of its topic or cluster. Neither loses the
verdict."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace

from quorate.cli.chaos.control.cluster import Cluster
from quorate.cli.chaos.results.result import Result
from quorate.cli.chaos.results.view import View
from quorate.cli.chaos.run.ending import Interruption, reason
from quorate.cli.chaos.run.run import run_scenario
from quorate.cli.chaos.run.setup import Plan

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def signals_as_interrupt() -> Iterator[None]:
    """Let SIGINT, SIGTERM and SIGHUP raise KeyboardInterrupt, outside of a run's event loop."""

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt(signal.Signals(number).name)

    before = {number: signal.signal(number, interrupt) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


async def interruptible(plan: Plan, cluster: Cluster, view: View) -> Result:
    """Run the plan, and let signals end it early. Raise nothing."""
    interruption = Interruption()
    interruption.install(asyncio.get_running_loop())
    result = await run_scenario(plan, cluster, view, interruption)
    return replace(result, ended_by=interruption.name)


def ended_by(result: Result, error: BaseException) -> Result:
    """Return the result with the signal, if `error` is one of `signals_as_interrupt`."""
    return replace(result, ended_by=str(error)) if isinstance(error, KeyboardInterrupt) else result


def without_leftovers(result: Result, what: str, remove: Callable[[], None]) -> Result:
    """Return the result after `remove`. If it fails, the result says what is left behind.

    A failure never replaces the verdict."""
    try:
        with signals_as_interrupt():
            remove()
    except (Exception, KeyboardInterrupt) as error:  # the verdict must not be lost
        left = (*result.left_behind, f"{what}: {reason(error)}")
        return ended_by(replace(result, left_behind=left), error)
    return result
