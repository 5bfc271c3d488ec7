"""One of log.cleaner.threads: looks for a log, cleans it piece by piece, and looks again."""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Any, Protocol

from quorate.broker.compaction.cleanable import Cleanable, CompactionSettings
from quorate.broker.compaction.cleaning import Cleaning, CleaningStats
from quorate.broker.compaction.log_cleaning import CleaningAborted, CleaningWork, clean_log
from quorate.broker.compaction.throttle import IoThrottle
from quorate.broker.logs.cleaner_figures import CleanerFigures
from quorate.broker.logs.cleaner_settings import CleanerSettings
from quorate.broker.logs.compacted_log import CompactedLog, cleaning_of
from quorate.broker.logs.log_manager import LogManager
from quorate.quorum.log.files.errors import LogError
from quorate.quorum.log.files.names import PartitionName
from quorate.quorum.seams import Seams, Timer

SCANNED_PER_SLICE = 32
"""Logs that one iteration of the event loop looks at."""
REST_MS = 1
"""The pause after each piece of work, in which requests do not compete with the cleaner."""

logger = logging.getLogger("quorate.broker.cleaner")


class Cleaner(Protocol):
    """The cleaner that a worker belongs to; `LogCleaner` documents the members."""

    settings: CleanerSettings
    figures: CleanerFigures
    in_progress: dict[PartitionName, CleanerWorker]
    seams: Seams
    throttle: IoThrottle
    logs: LogManager
    partitions: Callable[[], Iterable[CompactedLog]]
    on_failure: Callable[[BaseException], None]

    @property
    def stopped(self) -> bool:
        """True once nothing may be started any more."""

    def candidate(self, partition: CompactedLog) -> tuple[Cleanable, CompactionSettings] | None:
        """Return the range of a log that may be cleaned now."""

    def mark_uncleanable(self, partition: CompactedLog, error: BaseException) -> None:
        """Clean this log no more."""

    def cleaned(
        self, partition: CompactedLog, offset: int, stats: CleaningStats, began_ms: int
    ) -> None:
        """Note that a log is clean up to `offset`."""

    def forget_removed(self, names: Iterable[PartitionName]) -> None:
        """Remove the uncleanable logs that are not among `names`."""


class CleanerWorker:
    """Cleans one log at a time. The event loop owns it.

    Invariant: at most one piece of work of a worker is in the thread of long work."""

    def __init__(self, cleaner: Cleaner) -> None:
        self._cleaner = cleaner
        self._clock = cleaner.seams.clock
        self._timer: Timer | None = None
        self._waiting: Callable[[], None] | None = None
        """The work that begins when the timer is over."""
        self._retired = False

    def retire(self) -> None:
        """Look for nothing more. A cleaning in progress goes on, unless the cleaner is stopped."""
        self._retired = True

    def wake(self) -> None:
        """End the present pause or backoff, because the settings that it follows from have
        changed."""
        waiting, self._waiting = self._waiting, None
        if waiting is not None and self._timer is not None:
            self._timer.cancel()
            self._clock.call_soon(waiting)

    def _wait(self, delay_ms: float, work: Callable[[], None]) -> None:
        """Begin `work` after a delay, or when the settings change."""

        def over() -> None:
            self._waiting = None
            work()

        self._waiting = work
        self._timer = self._clock.call_later(delay_ms, over)

    def look(self) -> None:
        """Look at all compacted logs, some in each iteration of the event loop, and clean the one
        with the highest share of dirty bytes."""
        if not self._over:
            figures = self._cleaner.figures
            figures.max_dirty_percent = figures.max_compaction_delay_secs = 0
            partitions = list(self._cleaner.partitions())
            self._cleaner.forget_removed(each.name for each in partitions)
            self._scan(iter(partitions), None)

    @property
    def _over(self) -> bool:
        return self._retired or self._cleaner.stopped

    def _scan(self, remaining: Iterator[CompactedLog], best: _Candidate | None) -> None:
        if self._over:
            return
        some = list(islice(remaining, SCANNED_PER_SLICE))
        for partition in some:
            try:
                found = self._cleaner.candidate(partition)
            except LogError as error:
                self._cleaner.mark_uncleanable(partition, error)
                continue
            except OSError as error:
                self._failed(error)
                return
            if found and (best is None or found[0].ratio > best[1].ratio):
                best = (partition, *found)
        if len(some) == SCANNED_PER_SLICE:
            self._clock.call_soon(lambda: self._scan(remaining, best))
        elif best is None or not self._begin(*best):
            self._back_off()

    def _back_off(self) -> None:
        self._wait(self._cleaner.settings.backoff_ms, self.look)

    def _failed(self, error: OSError) -> None:
        """Report an error of the disk. If it costs only one log directory, those in the others are
        cleaned."""
        self._cleaner.on_failure(error)
        self._back_off()

    def _begin(
        self, partition: CompactedLog, found: Cleanable, settings: CompactionSettings
    ) -> bool:
        """Begin to clean a log. Return False if that is not possible yet."""
        cleaner = self._cleaner
        if partition.name in cleaner.in_progress or partition.settings is None:
            return False
        disk, wall_ms = cleaner.seams.disk, self._clock.wall_ms()
        begun = cleaning_of(disk, partition, settings, cleaner.settings, found, wall_ms)
        if begun is None:
            return False
        cleaning, preparation, segments = begun
        cleaner.in_progress[partition.name] = self
        log = partition.log
        work = clean_log(
            log,
            cleaning,
            segments,
            preparation,
            aborted=lambda: partition.settings is None,
            remove=partial(cleaner.logs.remove_renamed, log),
        )
        _Run(self, partition, cleaning, work, self._clock.now_ms()).advance(None, None)
        return True

    def ended(self, run: _Run, error: BaseException | None, offset: int) -> None:
        """Take the result of a cleaning, and look for the next log."""
        cleaner, partition = self._cleaner, run.partition
        cleaner.in_progress.pop(partition.name, None)
        if error is None:
            cleaner.cleaned(partition, offset, run.cleaning.stats, run.began_ms)
            self.look()
        elif isinstance(error, OSError) and error.errno != errno.ENOSPC:
            self._failed(error)
        elif isinstance(error, CleaningAborted | OSError):
            reason = "the log has changed" if isinstance(error, CleaningAborted) else str(error)
            logger.log(
                logging.INFO if isinstance(error, CleaningAborted) else logging.WARNING,
                "the cleaning of %s was aborted: %s. It begins again in %d ms",
                partition.name,
                reason,
                cleaner.settings.backoff_ms,
            )
            self._back_off()
        else:
            cleaner.mark_uncleanable(partition, error)
            self.look()

    def submit(self, job: Callable[[], Any], run: _Run) -> None:
        """Run the next piece of work of a cleaning, after the pause that the throttle demands."""
        cleaner = self._cleaner
        moved_bytes = run.cleaning.stats.io_bytes - run.counted_bytes
        run.counted_bytes += moved_bytes
        pause_ms = cleaner.throttle.pause_ms(moved_bytes, self._clock.now_ms())

        def go() -> None:
            if not cleaner.stopped:
                cleaner.seams.disk.submit_long(job, run.advance)

        self._wait(max(REST_MS, pause_ms), go)

    @property
    def stopped(self) -> bool:
        """True once nothing may be started any more."""
        return self._cleaner.stopped


_Candidate = tuple[CompactedLog, Cleanable, CompactionSettings]


class _Run:
    """One cleaning in progress."""

    def __init__(
        self,
        worker: CleanerWorker,
        partition: CompactedLog,
        cleaning: Cleaning,
        work: CleaningWork[int],
        began_ms: int,
    ) -> None:
        self.partition = partition
        self.cleaning = cleaning
        self.began_ms = began_ms
        self.counted_bytes = 0
        """The bytes of I/O that the throttle has counted."""
        self._work = work
        self._worker = worker

    def advance(self, result: Any, error: BaseException | None) -> None:
        """Take the result of a piece of work, and submit the next one. Runs on the event loop."""
        if self._worker.stopped:
            return
        try:
            job = self._work.send(result) if error is None else self._work.throw(error)
        except StopIteration as end:
            self._worker.ended(self, None, end.value)
        except (CleaningAborted, LogError, OSError) as ended:
            self._worker.ended(self, ended, 0)
        else:
            self._worker.submit(job, self)
