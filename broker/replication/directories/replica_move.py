"""The move of one replica to another log directory of its broker (KIP-113, KIP-858).

| stage     | work                                                                               |
|-----------|------------------------------------------------------------------------------------|
| opening   | the future log is made, or the one that the start found is recovered               |
| waiting   | another move of this broker has its turn                                           |
| copying   | the future log follows the current one, piece by piece (`move_copy.py`)            |
| assigning | The future log has caught up once. The broker reports the target as the directory  |
|           | of the replica, and waits until the controller has committed that. Meanwhile the   |
|           | move copies new records, and another move has the turn                             |
| flushing  | The future log is flushed. Then it gets the last records, and takes the place of   |
|           | the current log (`broker/logs/future_logs.py`). If these are many, it copies again |

A move ends early if it is cancelled, if the replica is removed, if one of the two directories
fails, or if the current log has damaged batches. If the target was reported before, the broker
reports the directory of the current log again (KAFKA-16297).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from quorate.broker.logs.log_directory import LogDirectory
from quorate.broker.logs.log_manager import LogManager
from quorate.broker.logs.log_opening import LogOpenParameters, open_log
from quorate.broker.partition.local_replica import LocalReplica
from quorate.broker.replication.directories import move_copy
from quorate.broker.replication.directories.move_copy import align, append_piece, read_piece
from quorate.broker.replication.partitions.hosted_partition import HostedPartition, Key
from quorate.broker.replication.partitions.replication_throttle import ReplicationThrottle
from quorate.quorum.ids import Uuid
from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.log.files import checkpoints
from quorate.quorum.log.files.errors import LogError
from quorate.quorum.log.log import Log
from quorate.quorum.log.segments.segment import Segment
from quorate.quorum.seams import Clock, Disk

REST_MS = 1
"""The pause after each piece."""
POLL_MS = 100
"""The interval at which a move that has caught up copies new records and looks at the metadata."""
REPORT_INTERVAL_MS = 10_000
"""The time after which the target is reported again if the controller has not recorded it."""
TAIL_BYTES = 65_536
"""The end of the log that the event loop reads itself, in bytes, or one larger batch. Otherwise a
move would always be a few records behind."""
LAST_BYTES = 1_048_576
"""Maximum size of the records that are copied immediately before the swap, in bytes, and perhaps a
last piece of TAIL_BYTES. They have arrived during the flush."""

logger = logging.getLogger("quorate.broker.directories")


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveContext:
    """The parts of a broker that its moves use.

    `assign` reports the directory of a replica and later calls back (`AssignmentSender.assign`).
    `recorded` returns the directory of this broker's replica in the latest image. `take_offline`
    removes a replica whose log must not be used any more. `swapped` gets the earlier log of a
    partition and the new one. `on_failure` gets errors of a disk. `backoff_ms` is
    replica.fetch.backoff.ms."""

    clock: Clock
    disk: Disk
    logs: LogManager
    throttle: ReplicationThrottle
    assign: Callable[[Key, Uuid, Callable[[], None]], None]
    recorded: Callable[[Key], Uuid | None]
    take_offline: Callable[[HostedPartition], None]
    swapped: Callable[[Log, Log], None]
    on_failure: Callable[[BaseException], None]
    backoff_ms: int


class MoveQueue(Protocol):
    """The moves of a broker, which share turns to copy. A move calls nothing here after `stop`."""

    def opened(self, move: ReplicaMove) -> None:
        """Note that the move can copy, which begins with `ReplicaMove.copy`."""

    def waits_for_controller(self, move: ReplicaMove) -> None:
        """Note that the move has caught up and that the controller has not recorded its target."""

    def ended(self, move: ReplicaMove) -> None:
        """Note that the move is over."""


class ReplicaMove:
    """One move. The event loop owns it.

    Invariant: while the move is not over, at most one callback of it is outstanding, and
    `hosted.moving` is True. `moved` is True if the log is in the target, `failed` if an error has
    ended the move."""

    def __init__(
        self,
        context: MoveContext,
        hosted: HostedPartition,
        target: LogDirectory,
        queue: MoveQueue,
    ) -> None:
        """Begin with `begin`. `queue` learns of the stages."""
        self.hosted = hosted
        self.target = target
        self.name = hosted.name
        self.future: LocalReplica | None = None
        self.over = self.moved = self.failed = False
        self.copied_bytes = 0
        self._context = context
        self._queue = queue
        hosted.moving = True
        self._closed = False
        self._accepted = False
        self._reported_ms = 0
        self._generation = -1
        """The generation of the current log when the future log was aligned."""

    @property
    def future_log(self) -> Log | None:
        """The open future log, or None."""
        log = None if self.future is None else self.future.log
        assert log is None or isinstance(log, Log)
        return log

    @property
    def lag(self) -> int:
        """Return the number of records that the future log is behind the current one."""
        log, future = self.hosted.log, self.future_log
        copied_to = log.start_offset if future is None else future.end_offset
        return max(0, log.end_offset - copied_to)

    # --- begin and end

    def begin(self) -> None:
        """Open the future log, in steps, in the thread of long work. Blocks for small files."""
        if self.over:
            return
        context, hosted = self._context, self.hosted
        try:
            parameters = context.logs.futures.open_parameters(
                self.name,
                self.target,
                hosted.key[0],
                hosted.log.settings,
                hosted.partition.leader_epoch,
            )
        except (LogError, OSError) as error:
            self._failed(error)
            return
        context.logs.futures.begin_opening(self.name)
        self._open(parameters, opening(context.disk, parameters))

    def _open(self, parameters: LogOpenParameters, steps: IncrementalWork[Log]) -> None:
        def stepped(log: Log | None, error: BaseException | None) -> None:
            if self._closed:
                return
            if log is None and error is None:
                self._open(parameters, steps)
            else:
                self._opening_ended(parameters, log, error)
                self._context.logs.futures.end_opening(self.name)

        self._context.disk.submit_long(partial(step_of, steps), stepped)

    def _opening_ended(
        self, parameters: LogOpenParameters, log: Log | None, error: BaseException | None
    ) -> None:
        """Take over the open log, or delete it if the move is over."""
        futures = self._context.logs.futures
        if log is not None and self.over:
            futures.remove(self.name, self.target, log)
        elif log is not None:
            try:
                futures.take_over(parameters, self.target, log)
            except OSError as failure:
                self._failed(failure)
                return
            self.future = LocalReplica(*self.hosted.key, log, None, 0)
            self._queue.opened(self)
        elif error is not None and not self.over:
            self._failed(error)

    def stop(self) -> None:
        """End the move without another disk call. The future log stays open, and its directory
        stays. Report the directory of the current log if the target was reported."""
        self.over = True
        hosted, logs = self.hosted, self._context.logs
        hosted.moving = False
        logs.futures.stop_waiting(self.name, self.begin)
        if hosted.promised:
            hosted.promised = False
            actual = logs.id_of(self.name)
            if actual is not None:
                self._context.assign(hosted.key, actual, lambda: None)

    def close(self) -> None:
        """End the move without any call, because the broker stops."""
        self.over = self._closed = True

    def cancel(self) -> None:
        """End the move and delete the future log."""
        self.stop()
        self._context.logs.futures.discard(self.name)

    def _failed(self, error: BaseException) -> None:
        """End the move because of an error. A disk error may take a directory offline, or stop the
        node. Unless it is an error of the target, the future log stays for the next start, which
        may find no other log."""
        logs = self._context.logs
        if not self.over:
            logger.error("%r cannot be moved to %s: %s", self.hosted, self.target.path, error)
            self.failed = True
            damaged = isinstance(error, LogError)
            if not damaged and logs.failed_directory(error) != self.target.path:
                self.stop()
                logs.futures.keep(self.name)
            else:
                self.cancel()
            self._queue.ended(self)
        if not isinstance(error, LogError):
            self._context.on_failure(error)

    # --- copy

    def copy(self) -> None:
        """Begin to copy. Later, bring the future log as far as the current log reaches now."""
        if self.over:
            return
        context, current, future = self._context, self.hosted.log, self.future_log
        assert future is not None, "the future log is open"
        if context.throttle.exceeded:
            self._later(context.backoff_ms)
            return
        try:
            self._align()
            if move_copy.has_all_records(current, future):
                self._caught_up()
                return
            segment = current.segment_of(future.end_offset)
            position = segment.position_of(future.end_offset)
            is_tail = segment.next_offset == current.end_offset
            if is_tail and segment.size - position <= TAIL_BYTES:
                if self._append(current.read(future.end_offset, TAIL_BYTES)):
                    self._caught_up()
                return
            read = partial(read_piece, segment.file, position, segment.size - position)
        except (LogError, OSError) as error:
            self._failed(error)
            return
        context.disk.submit_long(read, partial(self._piece_read, segment, current.generation))

    def _later(self, delay_ms: int) -> None:
        self._context.clock.call_later(delay_ms, self.copy)

    def _align(self) -> None:
        """Compare the logs again if the current one was truncated since."""
        current, future = self.hosted.log, self.future_log
        assert self.future is not None and future is not None
        if self._generation != current.generation or future.end_offset < current.start_offset:
            align(self.hosted.partition, self.future)
            self._generation = current.generation
        future.advance_start(min(current.start_offset, future.end_offset))

    def _piece_read(
        self, segment: Segment, generation: int, data: bytes | None, error: BaseException | None
    ) -> None:
        if self.over:
            return
        if segment.removed or self.hosted.log.generation != generation:
            self.copy()
        elif data is None:
            assert error is not None
            self._failed(error)
        elif self._append(data):
            self._later(REST_MS)

    def _append(self, data: bytes) -> bool:
        """Append a piece, and count it. Return False if that has ended the move."""
        assert self.future is not None
        try:
            append_piece(self.hosted.partition, self.future, data, self._context.clock.wall_ms())
        except (LogError, OSError) as error:
            self._failed(error)
            return False
        self.copied_bytes += len(data)
        self._context.throttle.record(len(data))
        return True

    # --- the end of a move

    def _caught_up(self) -> None:
        """Report the target, or flush the future log if the metadata names it."""
        context, key, target_id = self._context, self.hosted.key, self._target_id
        now_ms = context.clock.now_ms()
        if not self.hosted.promised or now_ms - self._reported_ms >= REPORT_INTERVAL_MS:
            self.hosted.promised = True
            self._accepted, self._reported_ms = False, now_ms
            context.assign(key, target_id, self._accept)
        if move_copy.may_swap(self._accepted, context.recorded(key), target_id):
            context.logs.futures.flush(self.name, self._flushed)
        else:
            self._queue.waits_for_controller(self)
            self._later(POLL_MS)

    @property
    def _target_id(self) -> Uuid:
        return self._context.logs.ids[self.target.path]

    def _accept(self) -> None:
        self._accepted = True

    def _flushed(self) -> None:
        """Copy the last records, if they are few, and swap the logs."""
        if self.over:
            return
        current, future = self.hosted.log, self.future_log
        assert future is not None
        try:
            self._align()
            left = LAST_BYTES
            while left > 0 and not move_copy.has_all_records(current, future):
                data = current.read(future.end_offset, TAIL_BYTES)
                left -= len(data)
                if not self._append(data):
                    return
        except (LogError, OSError) as error:
            self._failed(error)
            return
        recorded = self._context.recorded(self.hosted.key)
        if (
            move_copy.may_swap(self._accepted, recorded, self._target_id)
            and move_copy.has_all_records(current, future)
            and future.flushed_offset >= current.flushed_offset
            and self.target.path in self._context.logs.online
        ):
            self._swap(current, future)
        else:
            self._later(REST_MS)

    def _swap(self, current: Log, future: Log) -> None:
        context, hosted, partition = self._context, self.hosted, self.hosted.partition
        if current.last_epoch > future.last_epoch:  # it has no records yet
            future.assign_epoch(current.last_epoch)
        future.settings = current.settings
        source = context.logs.home_of(self.name)
        self.over = True
        try:
            context.logs.futures.swap(
                self.name, partition.high_watermark, lambda: partition.producers.loaded
            )
        except OSError as error:
            self.failed = True
            hosted.moving = hosted.promised = False
            context.take_offline(hosted)
            context.on_failure(error)
            self._queue.ended(self)
            return
        self.moved = True
        hosted.log = partition.log = future
        hosted.moving = hosted.promised = False
        logger.info(
            "%r has moved from %s to %s, with its log end at %d",
            hosted,
            source,
            self.target.path,
            future.end_offset,
        )
        context.swapped(current, future)
        self._queue.ended(self)


def opening(disk: Disk, parameters: LogOpenParameters) -> IncrementalWork[Log]:
    """Return the steps that open a future log. Its topic id is durable afterwards, because a start
    compares it with that of the earlier log after the swap."""
    log = yield from open_log(disk, parameters)
    checkpoints.sync_partition_metadata(disk, parameters.directory)
    return log


def step_of(steps: IncrementalWork[Log]) -> Log | None:
    """Run one step of an opening. Return the log after the last one."""
    try:
        next(steps)
    except StopIteration as end:
        log: Log = end.value
        return log
    return None
