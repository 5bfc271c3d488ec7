"""One log directory of a broker: opening, checkpointing, retaining and deleting its logs.

The layout is Kafka's: one directory for each partition, four checkpoint files of offsets, and a
clean shutdown file. The clean shutdown file tells the next start that the logs need no recovery,
and with which broker epoch the broker stopped (KIP-966).

Durability. A record is acknowledged from the page caches of the ISR, as in Kafka. A flush only
shortens the recovery after a crash. `offset_checkpoints.py` states the rules of the checkpoints.

Damage. Stored batches that differ from those that were appended are never served. At a start the
committed ISR decides about them:

- If the ISR has other brokers and not this one, the others have everything acknowledged. The
  damaged rest is set aside, and the replica fetches it again before it rejoins the ISR.
- Otherwise the log is refused, because this broker may have the only copy.

Deletion. The directory of a deleted partition is renamed first, so that its name is free, and
removed after log.segment.delete.delay.ms. Expired segments are renamed, too, and removed after
file.delete.delay.ms of their topic.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Container, Iterable
from functools import partial

from quorate.broker.logs import producer_snapshots
from quorate.broker.logs.log_flusher import LogFlusher, ManagedLog
from quorate.broker.logs.log_opening import LogOpenParameters, parameters_of
from quorate.broker.logs.log_removals import LogRemovals
from quorate.broker.logs.offset_checkpoints import OffsetCheckpoints
from quorate.broker.logs.unopened_directories import (
    UnopenedDirectories,
    known_topic,
    require_none_lost,
)
from quorate.broker.partition.producer_state import ProducerStates
from quorate.quorum.ids import METADATA_TOPIC, Uuid, random_uuid, uuid_to_text
from quorate.quorum.log.files import checkpoints
from quorate.quorum.log.files.errors import CorruptLog
from quorate.quorum.log.files.names import (
    PartitionName,
    future_partition_of,
    is_deleted_directory,
    partition_of,
    stray_directory_name,
)
from quorate.quorum.log.files.settings import LogSettings
from quorate.quorum.log.log import Log
from quorate.quorum.seams import Disk, Seams

logger = logging.getLogger("quorate.broker.replication")


class LogDirectory:
    """The owner of one log directory.

    Life: `start` lists the directories. For each partition the caller takes `open_parameters`,
    opens the log (`log_opening.py`), and hands it over with `take_over`. `close` makes everything
    durable. The event loop owns the manager; the disk's thread does the periodic flushes, the
    removals and the final close.

    Invariant: a log is open here at most once, under its partition's name."""

    def __init__(
        self,
        seams: Seams,
        log_dir: str,
        *,
        file_delete_delay_ms: int,
        on_failure: Callable[[BaseException], None],
    ) -> None:
        """`on_failure` gets an error of the disk. The directory flushes and checkpoints nothing
        more then. `on_failure` may be called again, for other work in progress."""
        self.path = log_dir
        self.previous_broker_epoch = -1
        """The broker epoch of the last clean shutdown, or -1 after a crash or if it is unknown. The
        registration reports it."""
        self._clock = seams.clock
        self._disk: Disk = seams.disk
        self._random = seams.random
        self.delete_delay_ms = file_delete_delay_ms
        """The time after which the directory of a deleted partition is removed."""
        self._on_failure = on_failure
        self.clean = False
        """True if the last stop was clean, so that the logs that the start found are trusted."""
        self.offsets = OffsetCheckpoints(seams.disk, log_dir)
        """The checkpointed offsets of the logs in this directory."""
        self.unopened = UnopenedDirectories(seams.disk, log_dir, self._unique, self.offsets.remove)
        """The logs that the start found and that are not open."""
        self._removals = LogRemovals(seams.clock, seams.disk, lambda: self._closed, self._failed)
        self._settled = False
        """True once all partitions of the first image are open."""
        self.futures: dict[PartitionName, str] = {}
        """The future directories that the start found and whose moves have not begun again."""
        self._open: dict[PartitionName, ManagedLog] = {}
        self.flusher = LogFlusher(seams.clock, seams.disk, self._open, self.offsets, self._failed)
        self._closed = False
        self._jitter_seed = ""

    def start(self) -> None:
        """List the log directory and read the checkpoints. Blocks, before the broker serves; opens
        no log. Remove the clean shutdown file, so that a crash from now on is noticed."""
        self._disk.make_dirs(self.path)
        broker_epoch = checkpoints.take_clean_shutdown(self._disk, self.path)
        self.clean = broker_epoch is not None
        self.previous_broker_epoch = -1 if broker_epoch is None else broker_epoch
        self.offsets.read()
        for directory in self._disk.list(self.path):
            if is_deleted_directory(directory):
                self._removals.remove_directory(f"{self.path}/{directory}", 0)
            elif (name := partition_of(directory)) is not None and name.topic != METADATA_TOPIC:
                self.unopened.add(name)
            elif (name := future_partition_of(directory)) is not None:
                self.futures[name] = f"{self.path}/{directory}"

    # --- one log

    @property
    def log_count(self) -> int:
        """Return the number of logs, open or not."""
        return len(self._open) + len(self.unopened)

    def adopt(self, name: PartitionName, topic_id: Uuid, *, peers_have_it: bool) -> bool:
        """Return True if the start found a directory `name` of the topic `topic_id`. Set a
        directory of another topic aside (`UnopenedDirectories.adopt`). Blocks."""
        return self.unopened.adopt(name, topic_id, peers_have_it=peers_have_it)

    def topic_id_of_future(self, name: PartitionName) -> Uuid | None:
        """Return the topic id of a found future directory, or None if it is unknown. Blocks."""
        return known_topic(self._disk, self.futures[name])

    def promote_future(self, name: PartitionName) -> None:
        """Rename a found future directory to that of the partition, which stays unopened. The
        rename is durable on return. Blocks."""
        self._disk.rename(self.futures.pop(name), self._directory(name))
        self._disk.sync_dir(self.path)
        self.unopened.add(name)

    def set_future_aside(self, name: PartitionName) -> None:
        """Rename a found future directory to `-stray`. Blocks."""
        found, target = self.futures.pop(name), stray_directory_name(name, self._unique())
        logger.warning("no replica is being moved to %s, which is renamed to %s", found, target)
        self._disk.rename(found, f"{self.path}/{target}")

    def open_parameters(
        self,
        name: PartitionName,
        topic_id: Uuid,
        settings: LogSettings,
        *,
        leader_epoch: int,
        peers_have_it: bool,
    ) -> LogOpenParameters:
        """Return the parameters with which `open_log` opens the log of a partition.

        `leader_epoch` is the partition's latest. `peers_have_it` is True if other brokers have
        everything acknowledged. Blocks for small files, and sets a directory of another topic
        aside.

        Unless `peers_have_it`, raise CorruptCheckpoint if the topic id of the directory is
        unreadable, and CorruptLog if the log is lost. A loss is noticed only after a clean
        shutdown, for a partition of the first image: its directory is missing although its recovery
        point is above 0."""
        directory = self._directory(name)
        existed = self.adopt(name, topic_id, peers_have_it=peers_have_it)
        if not (existed or peers_have_it or self._settled) and self.clean:
            require_none_lost(directory, self.offsets.recovery_points.get(name, 0))
        return parameters_of(
            self.offsets,
            name,
            topic_id,
            settings,
            directory,
            existed=existed,
            clean=self.clean,
            wall_ms=self._clock.wall_ms(),
            leader_epoch=leader_epoch,
            peers_have_it=peers_have_it,
        )

    def take_over(
        self,
        parameters: LogOpenParameters,
        log: Log,
        producers: Callable[[], ProducerStates | None],
    ) -> None:
        """Take over an open log: flush, checkpoint and close it from now on. If damage was set
        aside, block for the fsync of a small file. If that raises OSError, the log is not taken
        over.

        `producers` returns the producer states, or None if they are not loaded."""
        name = parameters.name
        assert name not in self._open, f"{name} is open"
        # The log may end lower than before, if damage was set aside.
        self.offsets.lower_recovery_point(name, log.end_offset)
        self.offsets.lower_start_offset(name, log.start_offset)
        self.offsets.lower_cleaner_offset(name, log.end_offset)
        self.unopened.opened(name)
        log.before_truncation = partial(self._before_truncation, name)
        log.jitter_seed = self._random_text
        self._open[name] = ManagedLog(log, producers, self._clock.now_ms())

    def set_aside_strays(self, kept: Container[PartitionName]) -> None:
        """Rename the directories that belong to no replica of this broker to `-stray`. Call it once
        all partitions of the first image are open, and not before: every unopened directory but
        those of `kept` is renamed. Blocks for the renames."""
        self.unopened.set_aside_all(kept)
        self._settled = True
        present = (self._open, self.unopened, self.futures)
        for name in list(self.offsets.recovery_points):
            if not any(name in each for each in present):
                self.offsets.remove(name)

    def delete(self, name: PartitionName, done: Callable[[], None]) -> None:
        """Delete a log: rename its directory in the disk's thread, close its files, and remove them
        after the delay.

        Call `done` when a new topic may use the name: immediately if no log of this name is open.
        If the rename fails, `on_failure` gets the error before `done` is called. The name is free
        in other directories then."""
        managed = self.release(name)
        if managed is None:
            done()
        else:
            self.remove_log(managed.log, done)

    def remove_log(self, log: Log, done: Callable[[], None]) -> None:
        """Delete a log that was released (`LogRemovals.remove_log`)."""
        self._removals.remove_log(log, self._unique(), self.delete_delay_ms, done)

    def managed(self, name: PartitionName) -> ManagedLog | None:
        """Return an open log with the state of its flushes, or None."""
        return self._open.get(name)

    def release(self, name: PartitionName) -> ManagedLog | None:
        """Stop to flush and checkpoint a log, and return it, or None if it is not open. Its
        directory stays as it is."""
        self.offsets.remove(name)
        return self._open.pop(name, None)

    def apply_retention(self, log: Log, high_watermark: int) -> bool:
        """Remove the segments that retention no longer keeps (`LogRemovals.remove_expired`)."""
        return self._removals.remove_expired(log, high_watermark, self._clock.wall_ms())

    def remove_renamed(self, log: Log, paths: list[str]) -> None:
        """Remove renamed files of segments in the disk's thread, after the log's
        `file_delete_delay_ms`."""
        self._removals.remove_files(paths, log.settings.file_delete_delay_ms)

    def truncated(self, name: PartitionName, offset: int) -> None:
        """Remove the producer snapshots above `offset`, the log end after a truncation, or -1 if
        the log restarts. Call it before the next append. Blocks."""
        producer_snapshots.remove_snapshots_above(self._disk, self._directory(name), offset)

    def _before_truncation(self, name: PartitionName, offset: int) -> None:
        self.offsets.lower_recovery_point(name, offset)
        self.offsets.lower_high_watermark(name, offset)
        self.offsets.lower_start_offset(name, offset)
        self.offsets.lower_cleaner_offset(name, offset)

    def distrust(self, damage: CorruptLog) -> None:
        """Lower the recovery point of a damaged log to just behind the damage, so that the next
        start finds the damage and repairs it. Call it when the node is about to stop: no flush or
        checkpoint is started afterwards. Blocks. An OSError is only logged.

        If a log that is being opened for the first image is damaged, and the last stop was clean,
        restore the clean shutdown file: the next start must refuse the same log again."""
        self.stop()
        damaged = [
            (name, managed.log)
            for name, managed in self._open.items()
            if damage.path.startswith(f"{managed.log.directory}/")
        ]
        try:
            for name, log in damaged:
                first = log.first_damage(damage.path)
                if first is not None:
                    self.offsets.lower_recovery_point(name, first.offset + 1)
            if not damaged and self.clean and not self._settled and not self.flusher.running:
                self._close_all(self.previous_broker_epoch)
        except OSError as error:
            logger.error(
                "cannot record the damage for the next start, which may not notice it: %s; %s",
                error,
                damage,
            )

    def _directory(self, name: PartitionName) -> str:
        return f"{self.path}/{name}"

    def _random_text(self) -> str:
        """Return a text that stays the same while this process runs."""
        self._jitter_seed = self._jitter_seed or self._unique()
        return self._jitter_seed

    def _unique(self) -> str:
        return uuid_to_text(random_uuid(self._random)).replace("-", "_")

    # --- checkpoints

    def checkpoint_high_watermarks(self, offsets: Iterable[tuple[PartitionName, int]]) -> None:
        """Write the high watermarks in the disk's thread, if changed."""
        if not self._closed:
            self.offsets.submit_high_watermarks(offsets, self._done)

    def checkpoint_starts(self) -> None:
        """Write the log start offsets in the disk's thread, if they have changed."""
        if not self._closed:
            self.flusher.note_starts()
            self.offsets.submit(checkpoints.START_OFFSETS_NAME, self._done)

    def cleaner_offset(self, name: PartitionName) -> int | None:
        """Return the offset up to which the log was compacted, or None if it never was."""
        return self.offsets.cleaner_offsets.get(name)

    def checkpoint_cleaned(self, name: PartitionName, offset: int) -> None:
        """Note that the log is compacted up to `offset`, and write it in the disk's thread. The
        compacted segments are durably in place."""
        if not self._closed:
            self.offsets.cleaner_offsets[name] = offset
            self.offsets.submit(checkpoints.CLEANER_OFFSETS_NAME, self._done)

    def take_offline(self) -> None:
        """End the waits for flushes, and close the files in the disk's thread. The callers have
        removed the partitions. What cannot be closed stays open until the process ends."""
        self.stop()
        logs = list(self._open.values())
        self.flusher.abandon()
        self._open.clear()

        def close() -> None:
            for managed in logs:
                with contextlib.suppress(OSError):
                    managed.log.discard()

        self._disk.submit(close, lambda _, error: None)

    def _done(self, _: None, error: BaseException | None) -> None:
        if error is not None:
            self._failed(error)

    def _failed(self, error: BaseException) -> None:
        self.stop()
        self._on_failure(error)

    def stop(self) -> None:
        """Start no further flush, checkpoint or removal."""
        self._closed = True
        self.flusher.stop()

    # --- the end

    def close(
        self,
        broker_epoch: int,
        high_watermarks: Iterable[tuple[PartitionName, int]],
        done: Callable[[BaseException | None], None],
    ) -> None:
        """Flush and close all logs in the disk's thread, then write the clean shutdown file. Call
        `done` with the error, or None, on the event loop. Nothing may be appended any more, and the
        log cleaner is stopped.

        After a failure, `distrust` or an earlier `close`, only call `done` with None: nothing is
        flushed, and the logs stay open.

        The file is not written if a log is unopened after a crash: that log was not recovered, and
        the next start would trust it without reading it."""
        self.offsets.high_watermarks.update(high_watermarks)

        def submit() -> None:
            self.stop()
            # A step of the log cleaner that has begun ends first.
            self._disk.submit_long(lambda: None, close_all)

        def close_all(_: None, error: BaseException | None) -> None:
            self._disk.submit(lambda: self._close_all(broker_epoch), lambda _, error: done(error))

        if self._closed:
            self._clock.call_soon(lambda: done(None))
        else:
            self.flusher.when_idle(submit)

    def _close_all(self, broker_epoch: int) -> None:
        """Close all logs. Runs in the disk's thread, behind everything submitted to both threads
        of the disk."""
        for managed in self._open.values():
            snapshot = managed.snapshot()
            managed.log.close()
            if snapshot is not None:
                producer_snapshots.write_snapshot(self._disk, managed.log.directory, *snapshot)
        self.flusher.note_offsets()
        self.offsets.write_all()
        if self.clean or not (self.unopened or self.futures):
            # A broker that stops before it registers leaves the directory as of the epoch before.
            epoch = broker_epoch if broker_epoch >= 0 else self.previous_broker_epoch
            checkpoints.write_clean_shutdown(self._disk, self.path, epoch)
