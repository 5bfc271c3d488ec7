"""An asyncio event loop on virtual time: real tasks, futures and timers, no sockets and no waiting.

If no callback is ready, time jumps to the next timer. If no timer is set either, every task waits
for an event that cannot happen, and the loop raises Deadlock. Callbacks run first in, first out, as
asyncio documents. Timers of one time run in the order in which they were set. Only the edges
(network, disk, faults) make random decisions.

Tasks, futures and `run_until_complete` are those of BaseEventLoop. The code that runs for every
event is our own, because BaseEventLoop's bookkeeping took half of the time of a simulated event.
The few private names of BaseEventLoop that this module uses are the same from Python 3.11 to 3.14.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from heapq import heapify, heappop, heappush
from typing import Any, NoReturn, TypeVar

T = TypeVar("T")
CLOCK_RESOLUTION_S = 1e-9
"""Timers that are so close to each other run in one iteration."""
MANY_TIMERS = 100


class Deadlock(Exception):
    """Raised if no callback is ready and no timer is set."""


task_owner: ContextVar[Callable[[asyncio.Task[Any]], None]] = ContextVar("task_owner")
"""Called with each task that is started in its context."""


class Call(float):
    """A callback and the time at which it is due. A Call is a float, so that a heap compares it in
    C.

    It takes the place of asyncio's handle. A heap does not keep equal times in order, so `order`
    numbers the timers."""

    __slots__ = ("args", "callback", "context", "order", "timers")

    callback: Callable[..., Any] | None
    """None after a cancellation."""
    args: tuple[Any, ...]
    context: Context
    order: int
    timers: Timers | None
    """The timers that hold this call, or None."""

    def cancel(self) -> None:
        if self.callback is not None:
            self.callback, self.args = None, ()
            if self.timers is not None:
                self.timers.cancelled += 1

    def cancelled(self) -> bool:
        return self.callback is None

    def when(self) -> float:
        return float(self)


class Timers:
    """Calls ordered by time. A cancelled call stays until it is due, or until more than half of the
    calls of a large heap are cancelled."""

    def __init__(self) -> None:
        self.heap: list[Call] = []
        self.cancelled = 0
        self.added = 0

    def drop_cancelled(self) -> None:
        heap = self.heap
        if len(heap) > MANY_TIMERS and self.cancelled * 2 > len(heap):
            self.heap = heap = [each for each in heap if each.callback is not None]
            heapify(heap)
            self.cancelled = 0
        while heap and heap[0].callback is None:
            heappop(heap)
            self.cancelled -= 1


class SimLoop(asyncio.BaseEventLoop):
    _ready: deque[Call]
    _stopping: bool

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0
        self.events = 0
        self._timers = Timers()
        self.failures: list[BaseException] = []
        self.set_exception_handler(_remember_failure)
        self.set_task_factory(_owned_task)

    def time(self) -> float:
        return self.now_s

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run the loop until `coroutine` ends. Raise the exception of a callback, if one failed."""
        try:
            return self.run_until_complete(coroutine)
        finally:
            self.raise_failure()

    def run_for(self, seconds: float) -> None:
        self.run(asyncio.sleep(seconds))

    def raise_failure(self) -> None:
        if self.failures:
            raise self.failures.pop(0)

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> NoReturn:  # type: ignore[override]
        raise AssertionError(f"{func} asks for a thread: nondeterministic; use the seams")

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> Call:
        call = Call(self.now_s)
        call.callback = callback
        call.args = args
        call.context = copy_context() if context is None else context
        call.timers = None
        self._ready.append(call)
        return call

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> Call:
        return self.call_at(self.now_s + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> Call:
        call = Call(when)
        call.callback = callback
        call.args = args
        call.context = copy_context() if context is None else context
        timers = call.timers = self._timers
        call.order = timers.added = timers.added + 1
        heappush(timers.heap, call)
        return call

    def _run_once(self) -> None:
        """Run iterations until the loop is stopped. BaseEventLoop would run one iteration per
        call."""
        ready = self._ready
        while True:
            self._take_due()
            # calls that these calls add run in the next iteration, behind timers that are due by
            # then
            for _ in range(len(ready)):
                call = ready.popleft()
                if call.callback is None:
                    continue
                try:
                    call.context.run(call.callback, *call.args)
                except (SystemExit, KeyboardInterrupt):
                    raise
                except BaseException as error:
                    message = f"Exception in callback {call.callback}"
                    self.call_exception_handler({"message": message, "exception": error})
            if self._stopping:
                return

    def _take_due(self) -> None:
        """Make the due timers ready. If no callback is ready, jump to the time of the next
        timer."""
        timers, ready = self._timers, self._ready
        if timers.cancelled:
            timers.drop_cancelled()
        heap = timers.heap
        if not ready and not self._stopping:
            if not heap:
                raise Deadlock("nothing is ready and no timer is set")
            self.now_s = max(self.now_s, float(heap[0]))
        end_s = self.now_s + CLOCK_RESOLUTION_S
        if not heap or heap[0] >= end_s:
            return
        due = [heappop(heap)]
        while heap and heap[0] < end_s:
            due.append(heappop(heap))
        if len(due) > 1:
            due.sort(key=_by_time_then_order)
        for call in due:
            call.timers = None
        ready.extend(due)


def _by_time_then_order(call: Call) -> tuple[float, int]:
    """Return the key that sorts due timers. Without the order, an unrelated timer in the heap could
    swap two timers of one time."""
    return float(call), call.order


def _owned_task(loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> Any:
    task: asyncio.Task[Any] = asyncio.Task(coroutine, loop=loop, **options)
    if (own := task_owner.get(None)) is not None:
        own(task)
    return task


def _remember_failure(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    assert isinstance(loop, SimLoop)
    loop.failures.append(context.get("exception") or AssertionError(context["message"]))
