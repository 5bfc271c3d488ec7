"""Loads the producer states of hosted partitions in the disk's thread.

A load is needed after a truncation that removed all known batches of a producer, and after a start
without a usable snapshot (`broker/partition/partition_producers.py`). It reads the newest snapshot
and then the log from the snapshot's offset, one step at a time. Only one partition is loaded at a
time. Other work of the disk therefore waits for one step at most.

The log may change between two steps:

- A truncation changes `Log.generation`: the load starts again. So does a move of the replica to
  another log directory, after which another log has its place.
- A removed segment makes a step fail. If the log start has moved since, the load starts again.
- The replica keeps the headers of batches that are appended meanwhile
  (`PartitionProducers.append`). If there are too many, another round of the load reads them from
  the log.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from quorate.broker.logs.producer_loading import Snapshot, log_parts, newest_snapshot, read_parts
from quorate.broker.partition.producer_state import ProducerStates
from quorate.broker.replication.partitions.damage import unreadable
from quorate.broker.replication.partitions.hosted_partition import HostedPartition
from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.log.files.errors import CorruptLog
from quorate.quorum.log.log import Log
from quorate.quorum.protocol.errors import ErrorCode, KafkaError
from quorate.quorum.seams import Disk

_ENDED = object()


class ProducerLoader:
    """Loads the producer states of one broker, one partition after the other. The event loop owns
    it.

    Invariant: at most one load is in progress, that of the first partition in the queue."""

    def __init__(self, disk: Disk, on_failure: Callable[[BaseException], None]) -> None:
        """`on_failure` is called with an error that must stop the node: an OSError, or damage that
        this replica must not hide."""
        self._disk = disk
        self._on_failure = on_failure
        self._queue: dict[HostedPartition, None] = {}  # hosted partitions, so it is bounded
        self._closed = False

    def __len__(self) -> int:
        """Return the number of partitions whose states are being loaded or wait for that."""
        return len(self._queue)

    def load(self, hosted: HostedPartition) -> None:
        """Load the states of a partition. Do nothing if its load is queued or in progress, or after
        `close`.

        At the end, `hosted.producers_loaded` is called in a later iteration of the event loop: with
        None, or with a KafkaError if the log cannot be read. None does not prove that the states
        are known: it also ends the load of a partition that is no longer hosted."""
        if hosted in self._queue or self._closed:
            return
        self._queue[hosted] = None
        if len(self._queue) == 1:
            self._begin(hosted)

    def close(self) -> None:
        """Start no further step, and call nothing back."""
        self._closed = True

    def _begin(self, hosted: HostedPartition) -> None:
        """Find the newest snapshot that the log covers."""
        log = hosted.log
        find = partial(newest_snapshot, self._disk, log.directory, log.start_offset, log.end_offset)
        self._disk.submit(find, partial(self._snapshot_found, hosted, log, log.generation))

    def _snapshot_found(
        self,
        hosted: HostedPartition,
        searched: Log,
        generation: int,
        snapshot: Snapshot | None,
        error: BaseException | None,
    ) -> None:
        log = hosted.log
        if self._is_over(hosted):
            return
        if log is not searched or log.generation != generation:
            self._begin(hosted)
        elif error is not None:
            self._failed(hosted, error)
        else:
            states, offset = snapshot or (ProducerStates(), log.start_offset)
            self._read(hosted, states, offset)

    def _read(self, hosted: HostedPartition, states: ProducerStates, offset: int) -> None:
        """Read the log from `offset` to its present end into `states`.

        The log start may have passed `offset` since the snapshot or the last round."""
        log = hosted.log
        try:
            parts = log_parts(log, max(offset, log.start_offset))
        except (CorruptLog, OSError) as error:
            self._failed(hosted, error)
            return
        hosted.partition.producers.begin_load()
        steps = read_parts(self._disk, parts, states)
        self._step(_Round(hosted, states, steps))

    def _step(self, current: _Round) -> None:
        def stepped(paused: bool | None, error: BaseException | None) -> None:
            hosted = current.hosted
            if self._is_over(hosted):
                return
            if current.is_outdated(failed=error is not None):
                self._begin(hosted)
            elif error is not None:
                self._failed(hosted, error)
            elif paused:
                self._step(current)
            elif hosted.partition.producers.finish_load(current.states):
                self._finish(hosted, None)
            else:
                self._read(hosted, current.states, current.end_offset)

        self._disk.submit(lambda: next(current.steps, _ENDED) is not _ENDED, stepped)

    def _is_over(self, hosted: HostedPartition) -> bool:
        """Return True if the load of `hosted` has nothing left to do. End it then."""
        if self._closed:
            return True
        if hosted.gone or hosted.partition.producers.loaded is not None:
            self._finish(hosted, None)
            return True
        return False

    def _failed(self, hosted: HostedPartition, error: BaseException) -> None:
        code = ErrorCode.KAFKA_STORAGE_ERROR
        try:
            if not isinstance(error, CorruptLog):
                raise error
            code = unreadable(hosted, error)
        except (CorruptLog, OSError) as fatal:
            self._on_failure(fatal)
        self._finish(hosted, KafkaError(code, f"cannot read the producers of {hosted!r}: {error}"))

    def _finish(self, hosted: HostedPartition, error: KafkaError | None) -> None:
        del self._queue[hosted]
        following = next(iter(self._queue), None)
        if following is not None:
            self._begin(following)
        hosted.producers_loaded(error)  # the callbacks may queue another load


class _Round:
    """One pass over the log, from an offset to the log end at its start."""

    __slots__ = ("_generation", "_log", "_start_offset", "end_offset", "hosted", "states", "steps")

    def __init__(
        self, hosted: HostedPartition, states: ProducerStates, steps: IncrementalWork[None]
    ) -> None:
        self.hosted = hosted
        self.states = states
        self.steps = steps
        self.end_offset = hosted.log.end_offset
        self._log = hosted.log
        self._generation = hosted.log.generation
        self._start_offset = hosted.log.start_offset

    def is_outdated(self, *, failed: bool) -> bool:
        """Return True if the log has lost records that this round was to read, or has moved."""
        log = self.hosted.log
        return (
            log is not self._log
            or log.generation != self._generation
            or (failed and log.start_offset != self._start_offset)
        )
