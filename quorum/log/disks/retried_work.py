"""Work of the disk's thread that is repeated while the process lacks file descriptors.

Only work that may run twice is submitted here: it replaces whole files, syncs, or reads. OutOfFiles
means that a descriptor was missing, so no sync has failed and nothing is in doubt.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from quorate.quorum.log.files.errors import OutOfFiles
from quorate.quorum.seams import Clock, Disk

T = TypeVar("T")
RETRY_MS = 100
LINE_INTERVAL_MS = 10_000
logger = logging.getLogger("quorate.quorum.storage")


class RetriedWork:
    """The work of one owner, on the event loop. `disk` and `clock` are its seams."""

    def __init__(self, disk: Disk, clock: Clock) -> None:
        self._disk = disk
        self._clock = clock
        self._next_line_ms = 0
        self._closed = False

    def close(self) -> None:
        """Repeat no work any more. Another process, or another node of this one, may open the files
        from now on. `done` is not called for work that lacks a file descriptor."""
        self._closed = True

    def submit(
        self, work: Callable[[], T], done: Callable[[T | None, BaseException | None], None]
    ) -> None:
        """Run `work` in the disk's thread, as `Disk.submit` does. Repeat it RETRY_MS after it
        raised OutOfFiles. `done` gets its result or any other exception."""

        def again() -> None:
            if not self._closed:
                self._disk.submit(work, ended)

        def ended(result: T | None, error: BaseException | None) -> None:
            if not isinstance(error, OutOfFiles):
                done(result, error)
                return
            if self._clock.now_ms() >= self._next_line_ms:
                self._next_line_ms = self._clock.now_ms() + LINE_INTERVAL_MS
                logger.warning("the process has no file descriptor left: retrying after %s", error)
            self._clock.call_later(RETRY_MS, again)

        self._disk.submit(work, ended)
