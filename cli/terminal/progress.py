"""The progress of work that takes more than two seconds, on standard error.

A terminal shows one line with a bar, or with the elapsed time if the total is not known. The line
is redrawn, and erased at the end. Other outputs get plain lines, at most one in PLAIN_EVERY_S. Work
that ends within QUIET_S shows nothing. Standard output has the results only."""

from __future__ import annotations

import contextlib
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import TextIO

QUIET_S = 2.0
PLAIN_EVERY_S = 10.0
BAR_WIDTH = 24
REDRAW_S = 0.5
CLEAR = "\r\x1b[K"


class Progress:
    """The progress of one piece of work. One thread owns it."""

    def __init__(
        self,
        what: str,
        *,
        stream: TextIO | None = None,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """`what` names the work, such as "draining broker 4"."""
        self._what = what
        self._stream = sys.stderr if stream is None else stream
        self._clock_s = clock_s
        self._began_s = clock_s()
        self._is_terminal = self._stream.isatty()
        self._next_s = self._began_s + QUIET_S
        self._drawn = False

    def update(self, done: int, total: int, unit: str) -> None:
        """Show that `done` of `total` units are done, if it is time for a line."""
        self._show(f"{done} of {total} {unit}", done / total if total else 1.0)

    def wait(self) -> None:
        """Show that the work still runs, if it is time for a line."""
        self._show(f"{self._clock_s() - self._began_s:.0f} s", None)

    def note(self, state: Callable[[], str]) -> None:
        """Show the text of `state` and the elapsed time, if it is time for a line."""
        if self._clock_s() >= self._next_s:
            self._show(f"{self._clock_s() - self._began_s:.0f} s, {state()}", None)

    def close(self) -> None:
        """Erase the line of a terminal."""
        if self._drawn and self._is_terminal:
            self._stream.write(CLEAR)
            self._stream.flush()
        self._drawn = False

    def _show(self, state: str, share: float | None) -> None:
        now_s = self._clock_s()
        if now_s < self._next_s:
            return
        self._next_s = now_s + (REDRAW_S if self._is_terminal else PLAIN_EVERY_S)
        line = f"{self._what}{bar(share) if self._is_terminal else ':'} {state}"
        if self._is_terminal:
            width = shutil.get_terminal_size().columns - 1
            self._stream.write(f"{CLEAR}{line[:width]}")
        else:
            self._stream.write(f"{line}\n")
        self._stream.flush()
        self._drawn = True


def bar(share: float | None) -> str:
    """Return the bar of a share from 0 to 1, or dots if it is not known."""
    if share is None:
        return " ..."
    full = round(BAR_WIDTH * min(1.0, max(0.0, share)))
    return f" [{'#' * full}{'-' * (BAR_WIDTH - full)}]"


class Background:
    """The progress of a command that asks a cluster: shown while it waits for an answer, from
    QUIET_S after its start on. The line of a terminal is erased before the wait ends, so that
    nothing that the command prints is mixed with it.

    A thread shows it, from the first wait to `close`. Nothing is shown while `waiting_for` runs,
    which says more."""

    def __init__(self, what: str, stream: TextIO | None = None) -> None:
        """`what` names the work, such as "asking the cluster"."""
        self._progress = Progress(what, stream=stream)
        self._lock = threading.Lock()
        self._waits = 0
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """Show that the block waits. The blocks of one thread may be nested."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._watch, name="progress", daemon=True)
            self._thread.start()
        with self._lock:
            self._waits += 1
        try:
            yield
        finally:
            with self._lock:
                self._waits -= 1
                if not self._waits:
                    self._progress.close()

    def close(self) -> None:
        """Stop the thread."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(REDRAW_S):
            with self._lock:
                if self._waits and not _named:
                    self._progress.wait()


_named: list[str] = []
"""The works of `waiting_for` that run now. One process runs one command, which has few of them."""


@contextlib.contextmanager
def waiting_for(what: str, stream: TextIO | None = None) -> Iterator[None]:
    """Show that the block runs, by a thread, because the block does not report its progress. The
    thread has ended when the block is left."""
    ended = threading.Event()
    progress = Progress(what, stream=stream)

    def watch() -> None:
        while not ended.wait(REDRAW_S):
            progress.wait()
        progress.close()

    thread = threading.Thread(target=watch, name="progress", daemon=True)
    thread.start()
    _named.append(what)
    try:
        yield
    finally:
        _named.remove(what)
        ended.set()
        thread.join()


@contextlib.contextmanager
def waiting_until_closed(what: str) -> Iterator[contextlib.ExitStack]:
    """Show that the block runs, as `waiting_for` does, until it closes the stack that it gets. It
    does that before it prints its first result."""
    with contextlib.ExitStack() as waiting:
        waiting.enter_context(waiting_for(what))
        yield waiting
