"""The disk's thread, one call at a time: the event loop runs between two calls of its work.

In production the disk's thread and the event loop run at the same time. Here the work runs in a
real thread that stops before each disk call until the loop lets it continue, after a virtual time.
Only one of the two threads ever runs, so a seed still decides everything.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from types import SimpleNamespace
from typing import Any
from unittest import mock

from quorate.broker.logs import checkpoint_files

Later = Callable[[Callable[[], None]], None]
"""Calls back from the event loop after a time of its choice."""


class Unwound(BaseException):
    """Raised to end the work of a dead process."""


running: ContextVar[DiskThread | None] = ContextVar("running", default=None)
"""The work that runs in this thread, or None in the event loop's thread."""


class SimMutex:
    """The lock that the disk's thread and the event loop share, in place of `threading.Lock`.

    An event loop that waits for the lock does nothing else. The work that holds the lock therefore
    continues immediately, until it releases the lock. Other work waits as for a disk call."""

    def __init__(self) -> None:
        self._holder: DiskThread | None = None
        self._held = False

    def __enter__(self) -> None:
        own = running.get()
        while self._held:
            if own is not None:
                own.wait()
            else:
                assert self._holder is not None, "the event loop holds the lock"
                self._holder.advance()
        self._held, self._holder = True, own

    def __exit__(self, *error: object) -> None:
        self._held, self._holder = False, None


@contextmanager
def simulated_locks() -> Iterator[None]:
    """Replace the locks of production code that the disk's thread takes."""
    replaced = SimpleNamespace(Lock=SimMutex)
    with mock.patch.object(checkpoint_files, "threading", replaced):
        yield


class DiskThread:
    """One piece of work. The event loop's thread owns this object."""

    def __init__(
        self,
        work: Callable[[], Any],
        done: Callable[[Any, BaseException | None], None],
        later: Later,
    ) -> None:
        """`done` is called in the event loop's thread at the end, unless the work is unwound.
        `later` decides how long the work waits for other work."""
        self._work = work
        self._done = done
        self._go = threading.Semaphore(0)
        self._stopped = threading.Semaphore(0)
        self._unwinding = False
        self._ended = False
        self._result: Any = None
        self._error: BaseException | None = None
        self._later = later
        self._stops = 0
        self._thread = threading.Thread(target=copy_context().run, args=(self._run,), daemon=True)
        self._thread.start()

    def owns_this_thread(self) -> bool:
        """Return True if the caller runs in the thread of the work."""
        return threading.current_thread() is self._thread

    def advance(self) -> None:
        """Let the work run to its next stop, or to its end."""
        if self._ended:
            return
        self._go.release()
        self._stopped.acquire()
        if self._is_over():
            self._thread.join()
            self._done(self._result, self._error)

    def _is_over(self) -> bool:
        """Return True if the work has ended, and its process lives."""
        return self._ended and not self._unwinding

    def wait(self) -> None:
        """Stop until other work has had a turn. The work calls this in its thread."""
        self.stop(self._later)

    def stop(self, later: Later) -> None:
        """Stop before a call. The work calls this in its thread."""
        if self._unwinding:
            raise Unwound
        self._stops += 1
        stop = self._stops

        def goes_on() -> None:
            if stop == self._stops:  # nothing has let the work continue before
                self.advance()

        later(goes_on)
        self._stopped.release()
        self._go.acquire()
        if self._unwinding:
            raise Unwound

    def unwind(self) -> None:
        """End the work at the call before which it has stopped, because the process is dead."""
        if self._ended or self.owns_this_thread():
            return
        self._unwinding = True
        self._go.release()
        self._stopped.acquire()
        self._thread.join()

    def _run(self) -> None:
        running.set(self)
        self._go.acquire()
        try:
            if not self._unwinding:
                self._result = self._work()
        except BaseException as error:
            self._error = error
        self._ended = True
        self._stopped.release()
