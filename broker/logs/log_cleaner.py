"""The log cleaner of a broker: chooses compacted logs and cleans them in the thread of long work.

The rules are in `broker/compaction`. A cleaning is a sequence of steps. Each piece of work for the
thread of long work takes as many of them as `Disk.rest` allows, and a pause follows
(log.cleaner.io.max.bytes.per.second, at least REST_MS). No flush waits for it. At the same time,
log.cleaner.threads cleanings may be in progress; they take turns in the one thread.

| state of a partition | meaning                                                                  |
|----------------------|--------------------------------------------------------------------------|
| none                 | it is looked at whenever a worker looks for work                         |
| in progress          | a worker cleans it. A truncation, a removal of segments, the deletion or |
|                      | a policy without compact voids the cleaning, and no checkpoint is        |
|                      | written. Nothing waits for the cleaning to stop                          |
| uncleanable          | a batch was damaged. The log is not cleaned until the broker restarts or |
|                      | the partition is removed. Reads of the damage are refused elsewhere      |
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from quorate.broker.compaction.cleanable import Cleanable, CompactionSettings
from quorate.broker.compaction.cleaning import CleaningStats
from quorate.broker.compaction.throttle import IoThrottle
from quorate.broker.logs.cleaner_figures import CleanerFigures
from quorate.broker.logs.cleaner_settings import CleanerSettings
from quorate.broker.logs.cleaner_worker import CleanerWorker
from quorate.broker.logs.compacted_log import CompactedLog, range_of
from quorate.broker.logs.log_manager import LogManager
from quorate.quorum.log.files.names import PartitionName
from quorate.quorum.log.log import Log
from quorate.quorum.seams import Seams

logger = logging.getLogger("quorate.broker.cleaner")


class LogCleaner:
    """The cleaner of one broker. The event loop owns it.

    Life: `start`, then `configure` whenever the dynamic configs change, then `stop`."""

    def __init__(
        self,
        seams: Seams,
        settings: CleanerSettings,
        logs: LogManager,
        partitions: Callable[[], Iterable[CompactedLog]],
        on_failure: Callable[[BaseException], None],
    ) -> None:
        """`partitions` returns the compacted partitions that are open. `on_failure` gets an error
        of the disk, which stops the node or takes one log directory offline."""
        self.settings = settings
        self.figures = CleanerFigures()
        self.in_progress: dict[PartitionName, CleanerWorker] = {}
        self.uncleanable: dict[PartitionName, Log] = {}
        """The damaged logs. Those of removed partitions go with the next look at all logs."""
        self.seams = seams
        self.logs = logs
        self.partitions = partitions
        self.on_failure = on_failure
        self.throttle = IoThrottle(settings.io_max_bytes_per_second, seams.clock.now_ms())
        self._workers: list[CleanerWorker] = []
        self._stopped = True

    def start(self) -> None:
        """Begin to look for logs to clean, unless log.cleaner.enable is false."""
        self.figures.last_run_ms = self.seams.clock.now_ms()
        self._stopped = not self.settings.enabled
        self._resize()

    def configure(self, settings: CleanerSettings) -> None:
        """Apply changed settings. A cleaning in progress keeps its memory and its buffers.

        End all pauses and backoffs. They may be long, and follow from the earlier settings. Kafka
        stops and restarts its threads."""
        if settings != self.settings:
            self.settings = settings
            now_ms = self.seams.clock.now_ms()
            self.throttle = IoThrottle(settings.io_max_bytes_per_second, now_ms)
            for worker in dict.fromkeys([*self._workers, *self.in_progress.values()]):
                worker.wake()
            self._resize()

    def stop(self) -> None:
        """Start no further piece of work. The next start removes what a cleaning has written."""
        self._stopped = True
        self._resize()

    def _resize(self) -> None:
        count = 0 if self._stopped else self.settings.threads
        while len(self._workers) > count:
            self._workers.pop().retire()
        while len(self._workers) < count:
            self._workers.append(CleanerWorker(self))
            self._workers[-1].look()

    @property
    def stopped(self) -> bool:
        """True before `start` and after `stop`."""
        return self._stopped

    @property
    def uncleanable_bytes(self) -> int:
        """Bytes of the logs that are not cleaned because they are damaged."""
        return sum(log.size_bytes for log in self.uncleanable.values() if not log.deleted)

    def mark_uncleanable(self, partition: CompactedLog, error: BaseException) -> None:
        """Clean this log no more."""
        self.uncleanable[partition.name] = partition.log
        logger.error(
            "the log cleaner cannot compact %s, which grows from now on: %s. It tries again after "
            "a restart of the broker",
            partition.name,
            error,
        )

    def candidate(self, partition: CompactedLog) -> tuple[Cleanable, CompactionSettings] | None:
        """Return the range of a log that a worker may clean, or None if it is not eligible."""
        name, settings = partition.name, partition.settings
        damaged = self.uncleanable.get(name)
        if damaged is not None and damaged is not partition.log:
            del self.uncleanable[name]  # another log has this name now
        if settings is None or name in self.in_progress or name in self.uncleanable:
            return None
        checkpoint = self.logs.cleaner_offset(name)
        found = range_of(partition, settings, checkpoint, self.seams.clock.wall_ms())
        if not found.checkpoint_is_valid:
            self._reset_checkpoint(partition, checkpoint, found.first_dirty)
        figures = self.figures
        figures.max_dirty_percent = max(figures.max_dirty_percent, int(100 * found.ratio))
        figures.max_compaction_delay_secs = max(
            figures.max_compaction_delay_secs, found.overdue_ms // 1000
        )
        return (found, settings) if found.is_eligible(settings) and partition.ready() else None

    def _reset_checkpoint(
        self, partition: CompactedLog, checkpoint: int | None, offset: int
    ) -> None:
        self.logs.checkpoint_cleaned(partition.name, offset)
        if not partition.deletes:  # retention moves the log start, too
            logger.warning(
                "the log cleaner begins %s again at offset %d, because its checkpoint %s lies "
                "outside of the log",
                partition.name,
                offset,
                checkpoint,
            )

    def cleaned(
        self, partition: CompactedLog, offset: int, stats: CleaningStats, began_ms: int
    ) -> None:
        """Note that a log is clean up to `offset`."""
        self.logs.checkpoint_cleaned(partition.name, offset)
        self.figures.cleaned(stats, began_ms, self.seams.clock.now_ms())
        logger.info(
            "compacted %s up to offset %d: %d bytes read, %d bytes written, %d keys",
            partition.name,
            offset,
            stats.read_bytes,
            stats.written_bytes,
            stats.keys,
        )

    def moved(self, earlier: Log, log: Log) -> None:
        """Note that `log` has taken the place of `earlier` in another log directory. Damage was
        copied, too (KAFKA-8362)."""
        for name in [name for name, each in self.uncleanable.items() if each is earlier]:
            self.uncleanable[name] = log

    def forget_removed(self, names: Iterable[PartitionName]) -> None:
        """Remove the uncleanable logs that are not among `names`, the partitions of this broker."""
        present = set(names)
        for name in [each for each in self.uncleanable if each not in present]:
            del self.uncleanable[name]
