"""The log directory of a broker: what is known of its partition logs, how they are to be opened;
flushes, checkpoints and deletes them.

Kafka's layout: one directory per partition, three checkpoint files of offsets, one clean shutdown
file that tells the next start that no log must be read, and under which broker epoch that was.

Durability: a partition is acknowledged from the page caches of its ISR. What is flushed here, every
flush.offset.checkpoint.interval and at the clean end, only shortens the recovery after a crash. So
the recovery point never passes what was synced, and it is lowered, durably, before a truncation
cuts below it: a log that ends below its recovery point was shortened by somebody else. The high
watermark is lowered likewise. What the checkpoints say of a deleted log is gone before another one
gets its name. A failed sync is told once and nothing goes on after it (R45).

What was synced and is damaged is never served. When the ISR, as committed when the log is opened,
has others and not this broker, they have all that was acknowledged: the damaged rest is set aside
and fetched again, outside of the ISR until it has caught up. The last one of an ISR refuses.

A deleted partition's directory is renamed at once and removed later.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from quorate.broker.logs import producer_snapshots
from quorate.broker.logs.checkpoint_files import CheckpointFiles
from quorate.broker.logs.log_opening import LogOpenParameters
from quorate.broker.logs.unopened_directories import UnopenedDirectories, require_none_lost
from quorate.broker.partition.producer_state import ProducerStates
from quorate.quorum.ids import METADATA_TOPIC, Uuid, random_uuid, uuid_to_text
from quorate.quorum.log import checkpoints
from quorate.quorum.log.epochs import NO_EPOCH
from quorate.quorum.log.errors import CorruptCheckpoint, CorruptLog
from quorate.quorum.log.file_removal import remove_files, rename_for_deletion
from quorate.quorum.log.log import Log
from quorate.quorum.log.names import PartitionName, is_deleted_directory, partition_of
from quorate.quorum.log.settings import LogSettings
from quorate.quorum.seams import Disk, Seams

logger = logging.getLogger("quorate.broker.replication")


@dataclass(frozen=True, slots=True)
class ManagedLog:
    """`producers` gives the state if it was ever loaded: it is saved beside the log."""

    log: Log
    producers: Callable[[], ProducerStates | None]


class LogManager:
    def __init__(
        self,
        seams: Seams,
        log_dir: str,
        *,
        file_delete_delay_ms: int,
        on_failure: Callable[[BaseException], None],
    ) -> None:
        self.log_dir = log_dir
        self.previous_broker_epoch = -1
        """Of the last orderly shutdown; -1 after a crash. Goes into the registration."""
        self._clock = seams.clock
        self._disk: Disk = seams.disk
        self._random = seams.random
        self._delete_delay_ms = file_delete_delay_ms
        self._on_failure = on_failure
        self._clean = False
        self._unopened = UnopenedDirectories(seams.disk, log_dir, self._unique, self._forget)
        self._settled = False
        """All of the first image is open."""
        self._open: dict[PartitionName, ManagedLog] = {}
        self._high_watermarks: dict[PartitionName, int] = {}
        self._recovery_points: dict[PartitionName, int] = {}
        self._start_offsets: dict[PartitionName, int] = {}
        self._forgotten: dict[PartitionName, None] = {}
        """Deleted, while the files may still have offsets of theirs."""
        self._files = CheckpointFiles(seams.disk, log_dir)
        self._written: dict[str, dict[PartitionName, int]] = {}
        self._flushing = False
        self._closed = False
        self._close: Callable[[], None] | None = None

    def start(self) -> None:
        """Blocks: before the broker serves. Logs are opened later."""
        self._disk.make_dirs(self.log_dir)
        broker_epoch = checkpoints.take_clean_shutdown(self._disk, self.log_dir)
        self._clean = broker_epoch is not None
        self.previous_broker_epoch = -1 if broker_epoch is None else broker_epoch
        self._high_watermarks = self._read(checkpoints.HIGH_WATERMARKS_NAME)
        self._recovery_points = self._read(checkpoints.RECOVERY_POINTS_NAME)
        self._start_offsets = self._read(checkpoints.START_OFFSETS_NAME)
        for directory in self._disk.list(self.log_dir):
            if is_deleted_directory(directory):
                self._remove_later(f"{self.log_dir}/{directory}", 0)
            elif (name := partition_of(directory)) is not None and name.topic != METADATA_TOPIC:
                self._unopened.add(name)

    def _read(self, checkpoint: str) -> dict[PartitionName, int]:
        try:
            return checkpoints.read_offsets(self._disk, self.log_dir, checkpoint)
        except CorruptCheckpoint as error:
            # All three only say where to begin: without them more is read and fetched again.
            logger.warning("%s: going on without it", error)
            return {}

    # --- one log

    @property
    def unopened_count(self) -> int:
        """Logs that the start found and that are not open yet."""
        return len(self._unopened)

    def is_unopened(self, name: PartitionName) -> bool:
        return name in self._unopened

    def open_parameters(
        self,
        name: PartitionName,
        topic_id: Uuid,
        settings: LogSettings,
        *,
        leader_epoch: int,
        peers_have_it: bool,
    ) -> LogOpenParameters:
        """Return the parameters for `open_log`, from small files. Raise CorruptLog if the log is
        gone, or CorruptCheckpoint, unless everything acknowledged can be fetched again."""
        directory = self._directory(name)
        existed = self._unopened.adopt(name, topic_id, peers_have_it=peers_have_it)
        if not (existed or peers_have_it or self._settled) and self._clean:
            require_none_lost(directory, self._recovery_points.get(name, 0))
        if not existed and name in self._forgotten:
            self._forget_durably()
        recovery_point = self._recovery_points.get(name, 0) if existed else 0
        # Epochs that nothing vouches for are not believed where the records can be had again.
        only_saved = peers_have_it and recovery_point > 0
        return LogOpenParameters(
            name=name,
            topic_id=topic_id,
            directory=directory,
            settings=settings,
            wall_ms=self._clock.wall_ms(),
            existed=existed,
            clean=self._clean or not existed,
            recovery_point=recovery_point,
            start_offset=self._start_offsets.get(name, 0) if existed else 0,
            high_watermark=self._high_watermarks.get(name, 0) if existed else 0,
            latest_unsaved_epoch=NO_EPOCH if only_saved else leader_epoch,
            peers_have_it=peers_have_it,
        )

    def take(
        self,
        parameters: LogOpenParameters,
        log: Log,
        producers: Callable[[], ProducerStates | None],
    ) -> None:
        """It is open: flushed, checkpointed and closed from now on."""
        name = parameters.name
        self._unopened.opened(name)
        self._lower_recovery_point(name, log.end_offset)  # damage that was set aside
        log.before_truncation = partial(self._before_truncation, name)
        self._open[name] = ManagedLog(log, producers)

    def set_aside_strays(self) -> None:
        """After all partitions of the first image are open: what is left is nobody's."""
        self._unopened.set_aside_all()
        self._settled = True
        for name in [each for each in self._recovery_points if each not in self._open]:
            self._forget(name)

    def delete(self, name: PartitionName, done: Callable[[], None]) -> None:
        """Rename it, remove it later. Call `done` when the name is free for a new topic."""
        opened = self._open.pop(name, None)
        self._forget(name)
        if opened is None:
            done()
            return
        opened.log.deleted = True
        directory, unique = opened.log.directory, self._unique()

        def renamed(path: str | None, error: BaseException | None) -> None:
            self._done(None, error)
            opened.log.discard()
            if path is not None:
                self._remove_later(path, self._delete_delay_ms)
                done()

        self._disk.submit(lambda: rename_for_deletion(self._disk, directory, unique), renamed)

    def apply_retention(self, log: Log, high_watermark: int) -> bool:
        """Remove expired segments. Return True if the log start moved."""
        expired = log.take_expired(high_watermark=high_watermark, wall_ms=self._clock.wall_ms())
        paths = [segment.retire() for segment in expired]
        if paths:
            self._disk.submit(lambda: remove_files(self._disk, paths), self._done)
        return bool(paths)

    def truncated(self, name: PartitionName, offset: int) -> None:
        """Called after a truncation, before the next append."""
        producer_snapshots.remove_snapshots_above(self._disk, self._directory(name), offset)

    def _before_truncation(self, name: PartitionName, offset: int) -> None:
        self._lower_recovery_point(name, offset)
        if self._high_watermarks.get(name, 0) > offset:  # what was committed goes: unclean election
            self._high_watermarks[name] = offset
            self._files.write(checkpoints.HIGH_WATERMARKS_NAME, self._high_watermarks)

    def _lower_recovery_point(self, name: PartitionName, offset: int) -> None:
        """Blocks for a small file's fsync where it must be lowered: nothing may come before it."""
        if self._recovery_points.get(name, 0) > offset:
            self._recovery_points[name] = offset
            self._files.write(checkpoints.RECOVERY_POINTS_NAME, self._recovery_points)

    def distrust(self, damage: CorruptLog) -> None:
        """Blocks, but the node is ending. A start reads from the recovery point on: with that just
        behind the damage it finds it, and takes it for what was synced and is not whole. One that
        was refused before anything else was done stays as it was, for the next start to refuse."""
        self._closed = True
        damaged = [
            (name, opened.log)
            for name, opened in self._open.items()
            if damage.path.startswith(f"{opened.log.directory}/")
        ]
        try:
            for name, log in damaged:
                first = log.first_damage(damage.path)
                if first is not None:
                    self._lower_recovery_point(name, first.offset + 1)
            if not damaged and self._clean and not self._settled and not self._flushing:
                self._close_all(self.previous_broker_epoch)
        except OSError as error:
            logger.error("%s; the next start may not see: %s", error, damage)

    def _forget(self, name: PartitionName) -> None:
        for offsets in self._offsets.values():
            if offsets.pop(name, None) is not None:
                self._forgotten[name] = None

    def _forget_durably(self) -> None:
        """A log of the same name would be judged by the offsets of the one before."""
        for checkpoint, offsets in self._offsets.items():
            self._files.write(checkpoint, offsets)
            self._written.pop(checkpoint, None)
        self._forgotten.clear()

    @property
    def _offsets(self) -> dict[str, dict[PartitionName, int]]:
        return {
            checkpoints.RECOVERY_POINTS_NAME: self._recovery_points,
            checkpoints.START_OFFSETS_NAME: self._start_offsets,
            checkpoints.HIGH_WATERMARKS_NAME: self._high_watermarks,
        }

    def _remove_later(self, path: str, delay_ms: int) -> None:
        def removed(_: None, error: BaseException | None) -> None:
            if error is not None:
                logger.warning("%s was not removed: %s; the next start tries again", path, error)

        def remove() -> None:
            if not self._closed:
                self._disk.submit(lambda: self._disk.remove_tree(path), removed)

        self._clock.call_later(delay_ms, remove)

    def _directory(self, name: PartitionName) -> str:
        return f"{self.log_dir}/{name}"

    def _unique(self) -> str:
        return uuid_to_text(random_uuid(self._random)).replace("-", "_")

    # --- checkpoints, off the loop

    def checkpoint_high_watermarks(self, offsets: Iterable[tuple[PartitionName, int]]) -> None:
        self._high_watermarks.update(offsets)
        self._write(checkpoints.HIGH_WATERMARKS_NAME, self._high_watermarks)

    def checkpoint_flushed(self) -> None:
        """Flush every log that needs it, one after another so that others get at the disk too, then
        write how far they are flushed."""
        if not self._flushing and not self._closed:
            self._flushing = True
            self._flush_next(iter(list(self._open.items())))

    def _flush_next(self, remaining: Iterator[tuple[PartitionName, ManagedLog]]) -> None:
        for name, opened in remaining:
            log = opened.log
            if log.flushed_offset < log.end_offset and self._open.get(name) is opened:
                self._flush(name, opened, remaining)
                return
        self._flushing = False
        if self._close is not None:
            self._close()
            return
        self._note_offsets()
        self._write(checkpoints.RECOVERY_POINTS_NAME, self._recovery_points)
        self._write(checkpoints.START_OFFSETS_NAME, self._start_offsets)

    def _flush(
        self,
        name: PartitionName,
        opened: ManagedLog,
        remaining: Iterator[tuple[PartitionName, ManagedLog]],
    ) -> None:
        flush = opened.log.prepare_flush()
        snapshot = self._snapshot(opened)

        def work() -> None:
            flush.run()
            if snapshot is not None:
                producer_snapshots.write_snapshot(self._disk, opened.log.directory, *snapshot)

        def flushed(_: None, error: BaseException | None) -> None:
            if self._open.get(name) is opened:  # else it was deleted meanwhile
                if error is not None:
                    self._failed(error)
                    return
                proved = opened.log.complete_flush(flush)
                if snapshot is not None and not proved:  # truncated meanwhile: of another history
                    directory = opened.log.directory
                    producer_snapshots.remove_snapshots_above(
                        self._disk, directory, snapshot[0] - 1
                    )
            self._flush_next(remaining if self._close is None else iter(()))

        self._disk.submit(work, flushed)

    @staticmethod
    def _snapshot(opened: ManagedLog) -> tuple[int, bytes] | None:
        """Also one that nobody is in: the next start need not read what lies before it."""
        states, log = opened.producers(), opened.log
        if states is None or (not states and log.start_offset == log.end_offset):
            return None
        return log.end_offset, producer_snapshots.encode(states)

    def _note_offsets(self) -> None:
        for name, opened in self._open.items():
            self._recovery_points[name] = opened.log.flushed_offset
            if opened.log.start_offset > 0:
                self._start_offsets[name] = opened.log.start_offset

    def _write(self, checkpoint: str, offsets: dict[PartitionName, int]) -> None:
        if not self._closed and self._written.get(checkpoint) != offsets:
            snapshot = self._written[checkpoint] = dict(offsets)
            self._disk.submit(self._files.writing(checkpoint, snapshot), self._done)

    def _done(self, _: None, error: BaseException | None) -> None:
        if error is not None:
            self._failed(error)

    def _failed(self, error: BaseException) -> None:
        self._closed = True
        self._on_failure(error)

    # --- the end

    def close(
        self,
        broker_epoch: int,
        high_watermarks: Iterable[tuple[PartitionName, int]],
        done: Callable[[BaseException | None], None],
    ) -> None:
        """All durable, then the clean shutdown file, last. Nothing may be appended any more.

        After a crash there is no such file as long as a log was not opened, and so not recovered:
        it would be trusted unread at the next start."""
        self._high_watermarks.update(high_watermarks)

        def submit() -> None:
            self._closed = True
            self._disk.submit(lambda: self._close_all(broker_epoch), lambda _, error: done(error))

        if self._closed:
            self._clock.call_soon(lambda: done(None))
        elif self._flushing:
            self._close = submit
        else:
            submit()

    def _close_all(self, broker_epoch: int) -> None:
        """Runs in the disk's thread, behind all that was submitted before."""
        for opened in self._open.values():
            snapshot = self._snapshot(opened)
            opened.log.close()
            if snapshot is not None:
                producer_snapshots.write_snapshot(self._disk, opened.log.directory, *snapshot)
        self._note_offsets()
        self._files.write(checkpoints.HIGH_WATERMARKS_NAME, self._high_watermarks)
        self._files.write(checkpoints.RECOVERY_POINTS_NAME, self._recovery_points)
        self._files.write(checkpoints.START_OFFSETS_NAME, self._start_offsets)
        if self._clean or not self._unopened:
            # One that stopped before it registered leaves what it found, as of that epoch.
            epoch = broker_epoch if broker_epoch >= 0 else self.previous_broker_epoch
            checkpoints.write_clean_shutdown(self._disk, self.log_dir, epoch)
