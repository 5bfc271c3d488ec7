"""Flushes the open partition logs of a broker, and saves their producer states.

All flushes run in the disk's thread, at most one of each log at a time. There are three reasons:

| reason                             | logs                             | afterwards              |
|------------------------------------|----------------------------------|-------------------------|
| log.flush.offset.checkpoint.       | all with unflushed records, one  | producer snapshots, and |
| interval.ms (`run`)                | after another                    | the recovery points     |
| log.flush.scheduler.interval.ms    | those whose last flush is        |                         |
| (`run_overdue`)                    | flush.ms old, one after another  |                         |
| flush.messages (`flush`)           | the log of an append             | a callback              |

A run flushes one log after another, so that other users of the disk wait for one log at most.

A failed flush is reported once, and the flusher does nothing after it: the page cache may have
discarded the bytes that failed, so that a second flush would succeed without them (R45 in
tests/scenarios).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

from quorate.broker.logs import producer_snapshots
from quorate.broker.logs.offset_checkpoints import OffsetCheckpoints
from quorate.broker.partition.producer_state import ProducerStates
from quorate.quorum.histogram import Histogram
from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.log.files import checkpoints
from quorate.quorum.log.files.names import PartitionName
from quorate.quorum.log.log import Log
from quorate.quorum.log.slow_flushes import SlowFlushes
from quorate.quorum.seams import Clock, Disk


class Snapshot(NamedTuple):
    """The encoded states of all producers as of the log end `offset`, without the file's head."""

    offset: int
    entries: list[bytes]


class ManagedLog:
    """An open partition log, with the state of its flushes.

    `producers` returns its producer states, or None if they are not loaded. `flushing` is True
    while a flush is in progress. `waits` are the callbacks of `LogFlusher.flush`, each with the
    offset below which everything must be durable and the generation of the log at the request."""

    __slots__ = ("flushed_ms", "flushing", "log", "producers", "snapshot_offset", "waits")

    def __init__(
        self, log: Log, producers: Callable[[], ProducerStates | None], now_ms: int
    ) -> None:
        """Begin at `now_ms`, which counts as the time of the last flush, as in Kafka."""
        self.log = log
        self.producers = producers
        self.flushing = False
        self.flushed_ms = now_ms
        self.snapshot_offset = log.flushed_offset
        """The log end when the last producer snapshot was written, or found to be needless."""
        self.waits: list[tuple[int, int, Callable[[], None]]] = []

    def snapshot(self) -> tuple[int, bytes] | None:
        """Return the log end offset and the encoded producer states, or None if no snapshot is
        needed.

        No snapshot is needed if the states are not loaded, or if there is neither a producer nor a
        record. A snapshot without producers is worth a file if the log has records: with it, the
        next start need not read them."""
        states, log = self.producers(), self.log
        if states is None or (not states and log.start_offset == log.end_offset):
            return None
        return log.end_offset, producer_snapshots.encode(states)

    def snapshot_in_steps(self) -> IncrementalWork[Snapshot | None]:
        """Return the steps that copy the producer states as of now, for the event loop. The result
        is as that of `snapshot`, but not encoded. It is None, too, if the log is truncated
        meanwhile."""
        states, end_offset = self.producers(), self.log.end_offset
        if states is None or (not states and self.log.start_offset == end_offset):
            return None
        generation = self.log.generation
        entries = yield from states.copied(producer_snapshots.rows)
        if entries is None or self.log.generation != generation:
            return None
        return Snapshot(end_offset, entries)

    def release_all(self) -> None:
        """Call all callbacks, because the log was deleted."""
        waits, self.waits = self.waits, []
        for _, _, done in waits:
            done()

    @property
    def dirty(self) -> bool:
        """Return True if the log has records that no flush has covered."""
        return self.log.flushed_offset < self.log.end_offset

    def take_done(self) -> list[Callable[[], None]]:
        """Remove and return the callbacks whose records are durable or were truncated."""
        log, waits = self.log, self.waits
        self.waits = [
            each for each in waits if each[0] > log.flushed_offset and each[1] == log.generation
        ]
        return [
            done
            for offset, generation, done in waits
            if offset <= log.flushed_offset or generation != log.generation
        ]


class LogFlusher:
    """The flushes of all open logs. The event loop owns it; at most one run is in progress.

    `running` is True while a flush or a run is in progress, and stays True after a flush that
    failed."""

    def __init__(
        self,
        clock: Clock,
        disk: Disk,
        logs: Mapping[PartitionName, ManagedLog],
        offsets: OffsetCheckpoints,
        on_failure: Callable[[BaseException], None],
    ) -> None:
        """`logs` is the live map of open logs. `on_failure` gets the error of a failed write or
        flush."""
        self._clock = clock
        self._slow = SlowFlushes(clock)
        self._disk = disk
        self._logs = logs
        self._offsets = offsets
        self._on_failure = on_failure
        self._on_idle: Callable[[], None] | None = None
        self._stopped = False
        self._run_in_progress = False
        self._flushes_in_progress = 0
        self.times = Histogram()
        """The flushes of logs that have ended, from the submission to the end."""

    @property
    def running(self) -> bool:
        """Return True while a flush or a run is in progress, or if a flush has failed."""
        return self._run_in_progress or self._flushes_in_progress > 0

    def run(self) -> None:
        """Flush every log that has unflushed records, save its producer states, then write the
        recovery points. Do nothing while an earlier run is in progress."""
        if not self._run_in_progress and not self._stopped:
            self._run_in_progress = True
            self._next(iter(list(self._logs.items())), overdue_only=False)

    def run_overdue(self) -> None:
        """Flush every log whose last flush is at least its flush.ms old. Do nothing while an
        earlier run is in progress."""
        if not self._run_in_progress and not self._stopped:
            self._run_in_progress = True
            self._next(iter(list(self._logs.items())), overdue_only=True)

    def flush(self, name: PartitionName, done: Callable[[], None]) -> None:
        """Flush one open log. Call `done` on the event loop when everything that was appended so
        far is durable, or has been truncated. Never call it after a failure or `stop`.

        If a flush of this log is in progress, the next one begins when it has ended, and covers all
        requests until then."""
        managed = self._logs[name]
        managed.waits.append((managed.log.end_offset, managed.log.generation, done))
        if not managed.flushing and not self._stopped:
            self._flush(name, managed, None, lambda: None)

    def when_idle(self, callback: Callable[[], None]) -> None:
        """Call back when no flush is in progress, perhaps before this returns. A run that is in
        progress ends early, without writing the checkpoints. The callback never comes if a flush
        fails. Call it once, at the end."""
        if self.running:
            self._on_idle = callback
        else:
            callback()

    def abandon(self) -> None:
        """End all waits for flushes, because the directory is offline. Its partitions are gone, so
        that no callback takes its records for durable."""
        for managed in self._logs.values():
            waits, managed.waits = managed.waits, []
            for _, _, done in waits:
                done()

    def stop(self) -> None:
        """Start no further run, and write no further checkpoint. A run in progress goes on with its
        flushes."""
        self._stopped = True

    def note_offsets(self) -> None:
        """Take the recovery points and log start offsets over from the open logs, in memory."""
        for name, managed in self._logs.items():
            self._offsets.recovery_points[name] = managed.log.flushed_offset
        self.note_starts()

    def note_starts(self) -> None:
        """Take the log start offsets over from the open logs, in memory."""
        for name, managed in self._logs.items():
            if managed.log.start_offset > 0:
                self._offsets.start_offsets[name] = managed.log.start_offset

    def _next(
        self, remaining: Iterator[tuple[PartitionName, ManagedLog]], *, overdue_only: bool
    ) -> None:
        """Flush the next log of a run, or end the run."""
        now_ms = self._clock.now_ms()
        for name, managed in remaining:
            if managed.flushing or self._logs.get(name) is not managed:
                continue
            log = managed.log
            if overdue_only:
                due = managed.dirty and now_ms - managed.flushed_ms >= log.settings.flush_ms
            else:
                due = managed.dirty or managed.snapshot_offset < log.end_offset
            if due:
                rest = remaining if self._on_idle is None else iter(())
                then = partial(self._next, rest, overdue_only=overdue_only)
                if overdue_only:
                    self._flush(name, managed, None, then)
                else:
                    managed.flushing = True
                    self._save(name, managed, managed.snapshot_in_steps(), then)
                return
        self._run_in_progress = False
        if self._on_idle is None and not overdue_only and not self._stopped:
            self.note_offsets()
            self._offsets.submit(checkpoints.RECOVERY_POINTS_NAME, self._written)
        self._maybe_idle()

    def _save(
        self,
        name: PartitionName,
        managed: ManagedLog,
        steps: IncrementalWork[Snapshot | None],
        then: Callable[[], None],
    ) -> None:
        """Copy the producer states, in steps if they are many, and flush the log with them."""
        try:
            next(steps)
        except StopIteration as end:
            if self._logs.get(name) is managed:
                self._flush(name, managed, end.value, then, saves=True)
            else:  # the partition was deleted meanwhile
                managed.flushing = False
                managed.release_all()
                then()
        else:
            self._clock.call_soon(lambda: self._save(name, managed, steps, then))

    def _flush(
        self,
        name: PartitionName,
        managed: ManagedLog,
        snapshot: Snapshot | None,
        then: Callable[[], None],
        *,
        saves: bool = False,
    ) -> None:
        """Flush one log in the disk's thread, write the snapshot, and call `then`. `saves` is True
        if the producer states are covered, with or without a snapshot."""
        flush = managed.log.prepare_flush()
        begun_us = self._clock.now_us()
        managed.flushing = True
        self._flushes_in_progress += 1

        def work() -> None:
            flush.run()
            if snapshot is not None:
                content = producer_snapshots.joined(snapshot.entries)
                producer_snapshots.write_snapshot(
                    self._disk, managed.log.directory, snapshot.offset, content
                )

        def flushed(_: None, error: BaseException | None) -> None:
            if self._logs.get(name) is managed:  # else the partition was deleted meanwhile
                if error is not None:
                    self._on_failure(error)
                    return
                valid = managed.log.complete_flush(flush)
                if saves and valid:
                    managed.snapshot_offset = snapshot.offset if snapshot else flush.end_offset
                if snapshot is not None and not valid:
                    # The log was truncated meanwhile, so the snapshot is of records that are gone.
                    producer_snapshots.remove_snapshots_above(
                        self._disk, managed.log.directory, snapshot.offset - 1
                    )
            self.times.observe(self._slow.ended(managed.log.directory, begun_us))
            self._ended(name, managed)
            then()

        self._disk.submit(work, flushed)

    def _ended(self, name: PartitionName, managed: ManagedLog) -> None:
        """Note the end of a flush, call the requests that it covers, and begin the next flush if
        others wait."""
        managed.flushing = False
        managed.flushed_ms = self._clock.now_ms()
        self._flushes_in_progress -= 1
        if self._logs.get(name) is not managed:
            managed.release_all()
        else:
            for done in managed.take_done():
                done()
            if managed.waits and not managed.flushing and not self._stopped:
                self._flush(name, managed, None, lambda: None)
        self._maybe_idle()

    def _maybe_idle(self) -> None:
        if self._on_idle is not None and not self.running:
            on_idle, self._on_idle = self._on_idle, None
            on_idle()

    def _written(self, _: None, error: BaseException | None) -> None:
        if error is not None:
            self._on_failure(error)
