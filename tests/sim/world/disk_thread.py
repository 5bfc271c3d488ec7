"""The disk's thread, one call at a time: between two calls of its work the event loop runs.

In production the disk's thread and the event loop run at the same time. Here the work runs in a
real thread that stops before each disk call until the loop lets it continue, after a virtual time.
Only one of the two threads ever runs, so a seed still decides everything.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import Any

Later = Callable[[Callable[[], None]], None]
"""Calls back from the event loop after a time of its choice."""
FEWEST_SLASHES = 3


class Unwound(BaseException):
    """Ends the work of a process that is dead."""


class DiskThread:
    """One piece of work. The event loop's thread owns this object."""

    def __init__(
        self, work: Callable[[], Any], done: Callable[[Any, BaseException | None], None]
    ) -> None:
        """`done` is called in the event loop's thread at the end, unless the work is unwound."""
        self._work = work
        self._done = done
        self._go = threading.Semaphore(0)
        self._stopped = threading.Semaphore(0)
        self._unwinding = False
        self._ended = False
        self._result: Any = None
        self._error: BaseException | None = None
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

    def stop(self, path: str, later: Later) -> None:
        """Stop before a call for `path`. The work calls this in its thread.

        The files in the log directory itself are written under a lock for which the event loop
        waits, so their calls do not stop."""
        if self._unwinding:
            raise Unwound
        if path.count("/") < FEWEST_SLASHES:
            return
        later(self.advance)
        self._stopped.release()
        self._go.acquire()
        if self._unwinding:
            raise Unwound

    def unwind(self) -> None:
        """End the work at the call before which it has stopped: the process is dead."""
        if self._ended or self.owns_this_thread():
            return
        self._unwinding = True
        self._go.release()
        self._stopped.acquire()
        self._thread.join()

    def _run(self) -> None:
        self._go.acquire()
        try:
            if not self._unwinding:
                self._result = self._work()
        except BaseException as error:
            self._error = error
        self._ended = True
        self._stopped.release()
