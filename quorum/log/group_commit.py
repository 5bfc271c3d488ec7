"""One sync for all who wait: the flushes of a log, off the loop, one at a time.

While one runs, any number of requests collect into the next. `on_flushed(offset)` is told once
per flush that proved something; a flush that ends after a truncation proves nothing and is done
anew (R22). A failed sync is told once, never tried again, and nothing goes on after it (R45).
"""

from __future__ import annotations

from collections.abc import Callable

from quorate.quorum.log.flush import Flush
from quorate.quorum.log.log import Log
from quorate.quorum.seams import Disk


class GroupCommit:
    def __init__(
        self,
        log: Log,
        disk: Disk,
        on_flushed: Callable[[int], None],
        on_failure: Callable[[BaseException], None],
    ) -> None:
        self._log = log
        self._disk = disk
        self._on_flushed = on_flushed
        self._on_failure = on_failure
        self._running = False
        self._requested = False
        self._failed = False

    def request(self) -> None:
        """Make all that is appended now durable; what comes until the sync starts rides along."""
        self._requested = True
        if not self._running and not self._failed:
            self._start()

    def _start(self) -> None:
        self._running, self._requested = True, False
        flush = self._log.prepare_flush()
        self._disk.submit(flush.run, lambda _, error: self._ended(flush, error))

    def _ended(self, flush: Flush, error: BaseException | None) -> None:
        if error is not None:
            self._failed = True
            self._on_failure(error)
            return
        self._running = False
        proved = self._log.complete_flush(flush)
        if self._requested or not proved:
            self._start()
        if proved:
            self._on_flushed(self._log.flushed_offset)
