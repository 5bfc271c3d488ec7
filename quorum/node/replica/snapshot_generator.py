"""Generates snapshots of the committed image, and removes old snapshots and old log (KIP-630).

Every node generates its own snapshots. A snapshot is due if the image has records that no snapshot
holds, and one of these conditions is met: the log has grown by a number of bytes, an interval has
passed, or the latest snapshot is damaged. No snapshot begins while the image ends inside of a batch
or a transaction.

The image is an immutable value. Its records are written to a part file, one batch every
SLICE_PAUSE_MS, while the node continues its work. The disk's thread then makes the snapshot
durable.

Retention runs after each snapshot, and otherwise every CLEAN_MS. It removes the oldest snapshots
that exceed a bound, and the whole segments of the log below the earliest snapshot that is left. The
latest snapshot always stays. The disk's thread removes the snapshots durably before the log's first
segments (see `metadata_storage.py`).

The timestamp in a snapshot is that of its last record in the log, and its voters are those of the
log at its end. All nodes therefore write the same bytes for a snapshot of the same offset.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from quorate.quorum.ids import EpochOffset
from quorate.quorum.log.batches.batch import batches
from quorate.quorum.log.disks.retried_work import RetriedWork
from quorate.quorum.log.files.errors import OutOfFiles
from quorate.quorum.log.segments.file_removal import remove_segments
from quorate.quorum.log.segments.retention import expired_snapshots
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.metadata.snapshot_file import write_snapshot
from quorate.quorum.node.replica.metadata_storage import MetadataStorage
from quorate.quorum.raft.voter_history import QuorumVoters
from quorate.quorum.seams import Buffer, Seams, Timer

CHECK_MS = 1000
"""Time, in ms, between two checks whether a snapshot is due."""
CLEAN_MS = 60_000
"""Time, in ms, between two runs of retention if no snapshot is written."""
SLICE_PAUSE_MS = 1
"""Pause, in ms, between two batches of a snapshot, in which the event loop does other work."""

logger = logging.getLogger("quorate.quorum.snapshots")


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotSettings:
    """The settings of snapshots, from the node's configuration."""

    bytes_between: int
    """Bytes of new log after which a snapshot is due
    (metadata.log.max.record.bytes.between.snapshots)."""
    interval_ms: int
    """Time from the begin of one snapshot until the next is due, or 0 if only the bytes count
    (metadata.log.max.snapshot.interval.ms)."""
    retention_bytes: int
    """Size of log and snapshots from which the oldest are removed; -1 means no bound. The latest
    snapshot and the log after it may be larger (metadata.max.retention.bytes)."""
    retention_ms: int
    """Age of a snapshot's last record after which the snapshot is removed; -1 means never. The
    latest snapshot stays (metadata.max.retention.ms)."""


class SnapshotGenerator:
    """Generates the snapshots of one node. Owned by the node's event loop.

    Invariant: at most one snapshot is written, or one retention runs, at a time. If the disk fails
    or the image cannot be encoded, `on_failed` is called, and the generator stops."""

    def __init__(
        self,
        seams: Seams,
        storage: MetadataStorage,
        settings: SnapshotSettings,
        image: Callable[[], MetadataImage | None],
        voters_at: Callable[[int], QuorumVoters],
        on_failed: Callable[[BaseException], None],
    ) -> None:
        """`image` returns the committed image, or None while that ends inside of a batch or of a
        transaction. `voters_at` returns the voter set below an offset."""
        self._clock = seams.clock
        self._disk = seams.disk
        self._work = RetriedWork(seams.disk, seams.clock)
        self._log = storage.log
        self._snapshots = storage.snapshots
        self._settings = settings
        self._image = image
        self._voters_at = voters_at
        self._on_failed = on_failed
        self._closed = False
        self._timer: Timer | None = None
        self._writing: EpochOffset | None = None
        self._last_ms = self._cleaned_ms = seams.clock.now_ms()

    def start(self) -> None:
        """Check every CHECK_MS whether a snapshot or a run of retention is due."""
        self._arm(CHECK_MS, self._check)

    def close(self) -> None:
        """Stop. A snapshot that is not complete stays behind as a part file. Work that the disk's
        thread has already begun is completed."""
        self._closed = True
        self._work.close()
        if self._timer is not None:
            self._timer.cancel()

    def _arm(self, delay_ms: float, then: Callable[[], None]) -> None:
        def run() -> None:
            if self._closed:
                return
            try:
                then()
            except OutOfFiles:
                self._begin_anew()
            except Exception as error:  # The disk failed, or the image cannot be encoded.
                self.close()
                self._on_failed(error)

        self._timer = self._clock.call_later(delay_ms, run)

    def _begin_anew(self) -> None:
        """Discard an unfinished snapshot, because the process has no file descriptor left. A later
        check begins another one."""
        snapshot, self._writing = self._writing, None
        if snapshot is not None:
            self._snapshots.drop_part(snapshot)
        self._arm(CHECK_MS, self._check)

    # -- when ------------------------------------------------------------------------------------

    def _check(self) -> None:
        image = self._image()
        if image is not None and self._is_due(image):
            self._begin(image)
            return
        if self._clock.now_ms() - self._cleaned_ms >= CLEAN_MS:
            self._clean()
        else:
            self._arm(CHECK_MS, self._check)

    def _is_due(self, image: MetadataImage) -> bool:
        end_offset = image.last.offset + 1
        latest = self._snapshots.latest
        done_offset = max(latest.offset if latest else 0, self._log.start_offset)
        if not done_offset < end_offset <= self._log.end_offset:
            return False
        if latest in self._snapshots.damaged:
            return True
        interval_ms = self._settings.interval_ms
        if interval_ms and self._clock.now_ms() - self._last_ms >= interval_ms:
            return True
        new_bytes = self._log.bytes_below(end_offset) - self._log.bytes_below(done_offset)
        return new_bytes >= self._settings.bytes_between

    # -- writing ---------------------------------------------------------------------------------

    def _begin(self, image: MetadataImage) -> None:
        image = image._replace(last_timestamp_ms=self._timestamp_of(image.last.offset))
        snapshot = EpochOffset(image.last.epoch, image.last.offset + 1)
        self._writing = snapshot
        self._last_ms = self._clock.now_ms()
        self._snapshots.start_part(snapshot)
        self._write(snapshot, write_snapshot(image, self._voters_at(snapshot.offset)), 0)

    def _timestamp_of(self, offset: int) -> int:
        """Return the timestamp of a record from the log. The image of the active controller has
        the time of that controller's clock instead."""
        (*_, (_, header)) = batches(self._log.read(offset, 1), verify=False)
        return header.max_timestamp_ms

    def _write(self, snapshot: EpochOffset, content: Iterator[Buffer], position: int) -> None:
        batch = next(content, None)
        if batch is None:
            self._work.submit(lambda: self._snapshots.freeze(snapshot), self._frozen)
            return
        self._snapshots.write_part(snapshot, position, batch)
        end = position + len(batch)
        self._arm(SLICE_PAUSE_MS, lambda: self._write(snapshot, content, end))

    def _frozen(self, size_bytes: int | None, error: BaseException | None) -> None:
        snapshot, self._writing = self._writing, None
        if self._closed:
            return
        if error is not None:
            self.close()
            self._on_failed(error)
            return
        assert snapshot is not None and size_bytes is not None, "no snapshot was being written"
        self._snapshots.added(snapshot, size_bytes)
        if snapshot.offset < self._log.start_offset:  # A later snapshot was installed meanwhile.
            self._snapshots.remove_before(self._log.start_offset)
            self._arm(CHECK_MS, self._check)
            return
        logger.info(
            "wrote a snapshot of the metadata below offset %d: %d bytes",
            snapshot.offset,
            size_bytes,
            extra={"event": "snapshot-written"},
        )
        self._clean()

    # -- retention -------------------------------------------------------------------------------

    def _clean(self) -> None:
        self._cleaned_ms, wall_ms = self._clock.now_ms(), self._clock.wall_ms()
        held = [(each, self._snapshots.size_of(each)) for each in self._snapshots]
        count = expired_snapshots(
            [(each, size, self._snapshots.timestamp_of(each)) for each, size in held],
            self._log.size_bytes,
            retention_bytes=self._settings.retention_bytes,
            retention_ms=self._settings.retention_ms,
            wall_ms=wall_ms,
        )
        old = [snapshot for snapshot, _ in held[:count]]
        if not old:
            self._arm(CHECK_MS, self._check)
            return
        for snapshot in old:
            self._snapshots.forget(snapshot)
        earliest = self._snapshots.earliest
        assert earliest is not None, "retention keeps at least one snapshot"
        self._log.advance_start(earliest.offset)
        expired = self._log.take_expired(high_watermark=earliest.offset, wall_ms=wall_ms)

        def remove() -> None:
            for snapshot in old:
                self._snapshots.remove(snapshot, self._log.settings.archive_directory)
            self._disk.sync_dir(self._log.directory)
            remove_segments(self._disk, expired, self._log.settings.archive_directory)

        self._disk.submit(remove, self._cleaned)

    def _cleaned(self, _: None, error: BaseException | None) -> None:
        if self._closed:
            return
        if error is not None:
            self.close()
            self._on_failed(error)
            return
        self._arm(CHECK_MS, self._check)
