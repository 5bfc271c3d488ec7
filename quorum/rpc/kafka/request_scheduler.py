"""Runs the long requests of a node in slices, between which the event loop serves other
connections.

If a handler returns steps (`quorum/incremental_work.py`), the scheduler runs them. The rules:

- A slice ends after `slice_ms` of CPU or `steps_per_slice` steps. A step is not interrupted, so it
  may exceed the slice. A request that finds no other work gets its first slice immediately. Later
  slices run one per loop iteration.
- The requests of one connection run one after the other.
- All slices together use at most the share `duty` of the node's time, with a burst of one slice.
  The rest is for other requests, such as produce and fetch.
- The connection that has used the least CPU is next, as in a fair scheduler of processes. Each
  connection has a virtual time, which advances by the CPU that it uses. An idle connection
  continues at the virtual time of the last one served, less one slice, so that it cannot save up
  CPU.
- A request that has used `request_cpu_ms` is cut off. The client receives REQUEST_TIMED_OUT, which
  every client knows, or its connection is closed.
- The steps of a request are closed when its connection ends.

The clock measures CPU time. If it stands still, as in the simulator, slices end by steps only.
"""

from __future__ import annotations

import heapq
import logging
from collections import deque
from dataclasses import dataclass
from typing import Protocol

from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.log_limit import LogLimit
from quorate.quorum.protocol.apis import APIS
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.rpc.kafka.boundary import is_node_failure
from quorate.quorum.seams import Address, Buffer, Clock

logger = logging.getLogger("quorate.kafka")


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerLimits:
    """The limits of slices and of requests. Times are milliseconds of CPU. `duty` is a part of the
    elapsed time."""

    slice_ms: float = 2.0
    steps_per_slice: int = 1000
    duty: float = 0.5
    request_cpu_ms: float = 10_000.0
    """Metadata of 400,000 partitions takes 2 s on a fast machine. A client that does not receive
    it asks again, so the bound is far above the need of a large cluster on a slow machine."""


class ConnectionWork:
    """The scheduled requests of one connection, and its virtual time `used_ms`: the CPU that it has
    used."""

    __slots__ = ("ended", "tasks", "used_ms", "waits")

    def __init__(self, used_ms: float) -> None:
        """Create a connection without work, at the virtual time `used_ms`."""
        self.used_ms = used_ms
        self.tasks: deque[Task] = deque()
        self.ended = False
        self.waits = False  # True while it is in the scheduler's heap


class ScheduledConnection(Protocol):
    """The connection of a scheduled request."""

    work: ConnectionWork

    def update_reading(self) -> None:
        """Pause or resume reading, because the last work of the connection has ended."""


class ScheduledRequest(Protocol):
    """A request whose handler returned steps (`context.py`)."""

    api_key: int
    version: int
    request_bytes: int
    parts: tuple[Buffer, ...] | None

    @property
    def connection(self) -> ScheduledConnection:
        """Return the connection of the request."""

    @property
    def peer(self) -> Address:
        """Return the address of the client."""

    def fail_with(self, error: Exception) -> None:
        """Fail the request because its steps raised `error`."""

    def fail(self, error: ErrorCode, message: str | None = None) -> None:
        """Answer that the whole request failed."""

    def abandon(self) -> None:
        """Discard the state that waits for the request."""

    def used_cpu(self, cpu_ms: float) -> None:
        """Count `cpu_ms` of CPU that a slice of the request has used."""

    def first_slice(self) -> None:
        """Note that the work of the request begins."""

    def work_ended(self) -> None:
        """Note that the work of the request has ended."""


class Task:
    """The steps of one request, and the CPU that they have used so far."""

    __slots__ = ("begun", "context", "cpu_ms", "steps")

    def __init__(self, context: ScheduledRequest, steps: IncrementalWork[None]) -> None:
        """Create a task that has not run yet."""
        self.context = context
        self.steps = steps
        self.cpu_ms = 0.0
        self.begun = False


class RequestScheduler:
    """Runs the steps of all ports of a node. The event loop owns it.

    `slices`, `cut_off` and `cpu_ms` count for metrics. Invariant: at most one task runs at a time,
    and a connection is in the heap at most once."""

    def __init__(self, clock: Clock, limits: SchedulerLimits | None = None) -> None:
        """Create a scheduler without work."""
        self.limits = limits or SchedulerLimits()
        self.slices = 0
        self.cut_off = 0
        self.cpu_ms = 0.0
        self._clock = clock
        self._waiting: list[tuple[float, int, ConnectionWork]] = []  # heap by virtual time
        self._order = 0
        self._virtual_ms = 0.0  # the virtual time of the connection that was served last
        self._credit_ms = self.limits.slice_ms
        self._credited_ms = clock.now_ms()
        self._running: Task | None = None
        self._scheduled = False
        self._lines = LogLimit(clock)

    def __len__(self) -> int:
        """Return the number of connections whose work waits."""
        return len(self._waiting)

    def new_connection_work(self) -> ConnectionWork:
        """Return the work of a new connection.

        Its virtual time is one slice after that of the connection served last. Otherwise clients
        that open a new connection for each request would always be next, and waiting connections
        never."""
        return ConnectionWork(self._virtual_ms + self.limits.slice_ms)

    def begin(self, context: ScheduledRequest, steps: IncrementalWork[None]) -> None:
        """Run `steps`: the first slice immediately, the rest later.

        The first slice also runs later if other work waits or runs, or if the share `duty` is used
        up. If the connection has ended, close `steps` instead."""
        work = context.connection.work
        if work.ended:
            _close(steps)
            return
        work.tasks.append(Task(context, steps))
        if len(work.tasks) > 1:
            return
        work.used_ms = max(work.used_ms, self._virtual_ms - self.limits.slice_ms)
        if self._running is None or self._running.context.connection.work is not work:
            self._push(work)
        if len(self._waiting) == 1 and self._running is None and self._may_run():
            self._slice()
        self._schedule()

    def end(self, work: ConnectionWork) -> None:
        """Discard the work of a connection that ends, and close its steps."""
        work.ended = True
        tasks, work.tasks = work.tasks, deque()
        for task in tasks:
            if task is not self._running:  # a generator cannot close itself
                _close(task.steps)

    def _push(self, work: ConnectionWork) -> None:
        work.waits = True
        self._order += 1
        heapq.heappush(self._waiting, (work.used_ms, self._order, work))

    def _may_run(self) -> bool:
        """Refill the credit, and return True if some is left."""
        limits, now_ms = self.limits, self._clock.now_ms()
        refill_ms = (now_ms - self._credited_ms) * limits.duty
        self._credit_ms = min(limits.slice_ms, self._credit_ms + refill_ms)
        self._credited_ms = now_ms
        return self._credit_ms > 0

    def _schedule(self) -> None:
        if not self._waiting or self._scheduled or self._running is not None:
            return
        self._scheduled = True
        if self._may_run():
            self._clock.call_soon(self._run)
        else:
            delay_ms = 1 + int(-self._credit_ms / self.limits.duty)
            self._clock.call_later(delay_ms, self._run)

    def _run(self) -> None:
        self._scheduled = False
        try:
            if self._may_run():
                self._slice()
        finally:
            self._schedule()

    def _slice(self) -> None:
        """Run the waiting connection with the least virtual time for one slice."""
        work = self._next()
        if work is None:
            return
        self._running = running = work.tasks[0]
        self.slices += 1
        if not running.begun:
            running.begun = True
            running.context.first_slice()
        begun_ms = self._clock.cpu_ms()
        try:
            self._run_first_task(work, begun_ms)
        finally:
            self._running = None
            spent_ms = self._clock.cpu_ms() - begun_ms
            self.cpu_ms += spent_ms
            self._credit_ms -= spent_ms
            work.used_ms += spent_ms
            running.context.used_cpu(spent_ms)
            if work.tasks and not work.waits:
                self._push(work)

    def _next(self) -> ConnectionWork | None:
        while self._waiting:
            virtual_ms, _, work = heapq.heappop(self._waiting)
            work.waits = False
            if work.tasks:  # else its connection has ended
                self._virtual_ms = max(self._virtual_ms, virtual_ms)
                return work
        return None

    def _run_first_task(self, work: ConnectionWork, begun_ms: float) -> None:
        """Run the first task of `work` for one slice. If the task ends, remove it."""
        task = work.tasks[0]
        limits, cpu_ms, steps = self.limits, self._clock.cpu_ms, task.steps
        end_ms = begun_ms + min(limits.slice_ms, limits.request_cpu_ms - task.cpu_ms)
        try:
            for _ in range(limits.steps_per_slice):
                next(steps)
                if work.ended:
                    _close(steps)
                    return
                if cpu_ms() >= end_ms:
                    break
        except StopIteration:
            self._done(work, task)
            task.context.work_ended()
            return
        except Exception as error:
            self._done(work, task)
            task.context.fail_with(error)
            return
        task.cpu_ms += cpu_ms() - begun_ms
        if task.cpu_ms >= limits.request_cpu_ms:
            self._done(work, task)
            self._cut_off(task)

    def _done(self, work: ConnectionWork, task: Task) -> None:
        if work.tasks and work.tasks[0] is task:
            work.tasks.popleft()
        if not work.tasks and not work.ended:
            task.context.connection.update_reading()

    def _cut_off(self, task: Task) -> None:
        context, limit_ms = task.context, self.limits.request_cpu_ms
        _close(task.steps)
        self.cut_off += 1
        name = APIS[context.api_key].name
        if (left_out := self._lines.passes(name)) is not None:
            logger.warning(
                "%s v%d from %s is cut off after %d ms of CPU (it holds %d bytes). "
                "Ask for less in one request.%s",
                name,
                context.version,
                context.peer,
                limit_ms,
                context.request_bytes,
                left_out,
            )
        if context.parts is None:
            message = f"the request used more than {limit_ms:.0f} ms of CPU; ask for less"
            context.fail(ErrorCode.REQUEST_TIMED_OUT, message)
            context.abandon()


def _close(steps: IncrementalWork[None]) -> None:
    try:
        steps.close()
    except Exception as error:
        if is_node_failure(error):
            raise
        logger.error("closing the steps of a request failed: %r", error)
