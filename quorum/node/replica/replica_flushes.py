"""The flushes of a metadata log that the Raft core requests, and those of an observer's log.

Invariant: a flush is reported to the core with the epoch in which it was requested, and only if no
truncation and no snapshot has replaced the flushed records meanwhile. Otherwise this node could
acknowledge other records at the same offsets that are not durable (R22 in tests/scenarios).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from quorate.quorum.log.group_commit import GroupCommit
from quorate.quorum.log.log import Log
from quorate.quorum.raft import effects
from quorate.quorum.seams import Seams, Timer

INTERVAL_MS = 5000
"""Interval, in ms, in which the log is flushed without a request of the core."""


class ReplicaFlushes:
    """The requested flushes of one log. Owned by the node's event loop."""

    def __init__(
        self,
        seams: Seams,
        log: Log,
        flushed: Callable[[effects.Flush], None],
        on_failed: Callable[[BaseException], None],
    ) -> None:
        """`flushed` gets the last request that a completed flush covers. `on_failed` gets the error
        of a failed flush."""
        self._clock = seams.clock
        self._log = log
        self._flushed = flushed
        self._commit = GroupCommit(log, seams.disk, seams.clock, self._completed, on_failed)
        self._requested: deque[effects.Flush] = deque()
        self._timer: Timer | None = None

    def start(self) -> None:
        """Flush the log every INTERVAL_MS, if it has bytes that are not flushed.

        The core requests no flush on an observer, which acknowledges nothing. The observer's log is
        a backup of the quorum all the same."""
        self._timer = self._clock.call_later(INTERVAL_MS, self._flush_regularly)

    def close(self) -> None:
        """Cancel the timer. A flush that runs is completed."""
        self._commit.close()
        if self._timer is not None:
            self._timer.cancel()

    def hold(self) -> None:
        """Start no flush before `release`, because the disk's thread replaces the log."""
        self._commit.hold()

    def release(self) -> None:
        """Start the flushes that were requested since `hold`."""
        self._commit.release()

    def request(self, effect: effects.Flush) -> None:
        """Begin to make the log durable up to `effect.offset`. `flushed` is called later."""
        self._requested.append(effect)
        self._commit.request()

    def truncated(self, offset: int) -> None:
        """Drop the requests beyond `offset`, the new end of the log."""
        self._requested = deque(each for each in self._requested if each.offset <= offset)

    def replaced(self) -> None:
        """Drop all requests, because a snapshot has replaced the log."""
        self._requested.clear()

    def _completed(self, offset: int) -> None:
        reached = None
        while self._requested and self._requested[0].offset <= offset:
            reached = self._requested.popleft()
        if reached is not None:
            self._flushed(reached)

    def _flush_regularly(self) -> None:
        if self._log.flushed_offset < self._log.end_offset:
            self._commit.request()
        self._timer = self._clock.call_later(INTERVAL_MS, self._flush_regularly)
