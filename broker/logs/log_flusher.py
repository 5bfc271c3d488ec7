"""Flushes the open partition logs of a broker, and saves their producer states.

The flusher runs every `log.flush.offset.checkpoint.interval.ms`. It flushes one log after another
in the disk's thread, so that other users of the disk wait for one log at most. Afterwards it
checkpoints the recovery points and the log start offsets.

A failed flush is reported once, and the flusher does nothing after it: the page cache may have
discarded the bytes that failed, so that a second flush would succeed without them (R45 in
tests/scenarios).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from quorate.broker.logs import producer_snapshots
from quorate.broker.logs.offset_checkpoints import OffsetCheckpoints
from quorate.broker.partition.producer_state import ProducerStates
from quorate.quorum.log import checkpoints
from quorate.quorum.log.log import Log
from quorate.quorum.log.names import PartitionName
from quorate.quorum.seams import Disk


@dataclass(frozen=True, slots=True)
class ManagedLog:
    """An open partition log. `producers` returns its producer states, or None if they are not
    loaded."""

    log: Log
    producers: Callable[[], ProducerStates | None]

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


class LogFlusher:
    """The periodic flush of all open logs. The event loop owns it; at most one run is in progress.

    `running` is True while a run is in progress, and stays True after a flush that failed."""

    def __init__(
        self,
        disk: Disk,
        logs: Mapping[PartitionName, ManagedLog],
        offsets: OffsetCheckpoints,
        on_failure: Callable[[BaseException], None],
    ) -> None:
        """`logs` is the live map of open logs. `on_failure` gets the error of a failed write or
        flush."""
        self._disk = disk
        self._logs = logs
        self._offsets = offsets
        self._on_failure = on_failure
        self._on_idle: Callable[[], None] | None = None
        self._stopped = False
        self.running = False

    def run(self) -> None:
        """Flush every log that has unflushed records, then write the checkpoints. Do nothing while
        an earlier run is in progress."""
        if not self.running and not self._stopped:
            self.running = True
            self._flush_next(iter(list(self._logs.items())))

    def when_idle(self, callback: Callable[[], None]) -> None:
        """Call back when no flush is in progress, perhaps before this returns. A run that is in
        progress ends early, without writing the checkpoints. The callback never comes if a flush
        fails. Call it once, at the end."""
        if self.running:
            self._on_idle = callback
        else:
            callback()

    def stop(self) -> None:
        """Start no further run, and write no further checkpoint. A run in progress goes on with its
        flushes."""
        self._stopped = True

    def note_offsets(self) -> None:
        """Take the recovery points and log start offsets over from the open logs, in memory."""
        for name, managed in self._logs.items():
            self._offsets.recovery_points[name] = managed.log.flushed_offset
            if managed.log.start_offset > 0:
                self._offsets.start_offsets[name] = managed.log.start_offset

    def _flush_next(self, remaining: Iterator[tuple[PartitionName, ManagedLog]]) -> None:
        for name, managed in remaining:
            log = managed.log
            if log.flushed_offset < log.end_offset and self._logs.get(name) is managed:
                self._flush(name, managed, remaining)
                return
        self.running = False
        if self._on_idle is not None:
            self._on_idle()
            return
        self.note_offsets()
        if not self._stopped:
            self._offsets.submit(checkpoints.RECOVERY_POINTS_NAME, self._written)
            self._offsets.submit(checkpoints.START_OFFSETS_NAME, self._written)

    def _flush(
        self,
        name: PartitionName,
        managed: ManagedLog,
        remaining: Iterator[tuple[PartitionName, ManagedLog]],
    ) -> None:
        flush = managed.log.prepare_flush()
        snapshot = managed.snapshot()

        def work() -> None:
            flush.run()
            if snapshot is not None:
                producer_snapshots.write_snapshot(self._disk, managed.log.directory, *snapshot)

        def flushed(_: None, error: BaseException | None) -> None:
            if self._logs.get(name) is managed:  # else the partition was deleted meanwhile
                if error is not None:
                    self._on_failure(error)
                    return
                valid = managed.log.complete_flush(flush)
                if snapshot is not None and not valid:
                    # The log was truncated meanwhile, so the snapshot is of records that are gone.
                    producer_snapshots.remove_snapshots_above(
                        self._disk, managed.log.directory, snapshot[0] - 1
                    )
            self._flush_next(remaining if self._on_idle is None else iter(()))

        self._disk.submit(work, flushed)

    def _written(self, _: None, error: BaseException | None) -> None:
        if error is not None:
            self._on_failure(error)
