"""Group commit: one fsync in the disk's thread for all requests that wait for one."""

from __future__ import annotations

from collections.abc import Callable

from quorate.quorum.log.disks.retried_work import RetriedWork
from quorate.quorum.log.flush import Flush
from quorate.quorum.log.log import Log
from quorate.quorum.log.slow_flushes import SlowFlushes
from quorate.quorum.seams import Clock, Disk


class GroupCommit:
    """The flushes of one log, one at a time, in the disk's thread.

    The log's thread, which runs the event loop, calls `request`. While a flush runs, further
    requests wait for the next one. The callbacks run in the log's thread. A flush that ends after a
    truncation proves nothing and is repeated (R22). After a failed flush no other one is started,
    because it may succeed without the bytes (R45; both in tests/scenarios). A flush that lacks a
    file descriptor has not failed: it is repeated. The replacement of the log may be repeated for
    the same reason. The owner holds the flushes meanwhile, because a flush that ends first would
    prove a log that is not on the disk yet.
    """

    def __init__(
        self,
        log: Log,
        disk: Disk,
        clock: Clock,
        on_flushed: Callable[[int], None],
        on_failure: Callable[[BaseException], None],
    ) -> None:
        """Call `on_flushed` after each flush that counts, with the flushed offset, which may be the
        same as before. Call `on_failure` once, with the error of the failed flush."""
        self._log = log
        self._work = RetriedWork(disk, clock)
        self._clock = clock
        self._slow = SlowFlushes(clock)
        self._on_flushed = on_flushed
        self._on_failure = on_failure
        self._running = False
        self._requested = False
        self._failed = False
        self._held = False

    def hold(self) -> None:
        """Start no flush before `release`. One that runs is completed."""
        self._held = True

    def release(self) -> None:
        """Start the flush that was requested since `hold`, if there is one."""
        self._held = False
        self._start_requested()

    def request(self) -> None:
        """Request that everything appended so far becomes durable.

        Batches that are appended before the flush starts are included in it. After a failed flush
        the call does nothing."""
        self._requested = True
        self._start_requested()

    def close(self) -> None:
        """Repeat no flush that lacks a file descriptor. One that runs is completed."""
        self._work.close()

    def _start_requested(self) -> None:
        if self._requested and not (self._running or self._failed or self._held):
            self._start()

    def _start(self) -> None:
        assert not self._failed, "no flush may follow a failed one"
        self._running, self._requested = True, False
        flush, begun_us = self._log.prepare_flush(), self._clock.now_us()
        self._work.submit(flush.run, lambda _, error: self._ended(flush, begun_us, error))

    def _ended(self, flush: Flush, begun_us: int, error: BaseException | None) -> None:
        assert self._running
        self._log.flush_times.observe(self._slow.ended(self._log.directory, begun_us))
        if error is not None:
            self._failed = True
            self._on_failure(error)
            return
        self._running = False
        proved = self._log.complete_flush(flush)
        self._requested = self._requested or not proved
        self._start_requested()
        if proved:
            self._on_flushed(self._log.flushed_offset)
