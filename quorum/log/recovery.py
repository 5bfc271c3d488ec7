"""The checks of a log that is opened: the end of a clean log, and every byte that a crash may tear.

After a clean shutdown the end is found from the index of the last segment. Otherwise recovery reads
and checks every batch from the trusted offset on. The trusted offset is the recovery point of a
partition, or the flushed marker of the metadata log. Everything below it was flushed. The batches
are one stream over all segments, because a crash may keep any part of the bytes that were not
synced.

| fault                                             | consequence                                 |
|---------------------------------------------------|---------------------------------------------|
| below the trusted offset: damage, a hole, the end | CorruptLog: those bytes were durable        |
| above it, in the metadata log                     | a torn batch or a missing segment is cut    |
|                                                   | off with all that follows; other damage:    |
|                                                   | CorruptLog, because the marker is a lower   |
|                                                   | bound of what was flushed                   |
| above it, in a partition                          | cut off with all that follows, because the  |
|                                                   | ISR acknowledged it, not this disk alone    |
| anywhere, if other replicas have the records      | cut off, and kept in `.damaged` files       |

The leader epoch of a batch lies outside of its CRC. Below the recovery point or the marker the
saved epochs must agree with it. Above them the saved epochs may be out of date. The owner of the
log then says up to which epoch a batch is believed (`latest_unsaved_epoch`). Kafka believes any
epoch.

A cut removes everything after it, and the file is truncated before the next append. Otherwise old
bytes could follow the new batch (R43, tests/scenarios). `scan.py` distinguishes a torn batch from
damage.

To read gigabytes takes many seconds. Recovery therefore works in steps, and nothing else uses the
log meanwhile.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import NamedTuple

from quorate.quorum.ids import EpochOffset
from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.log import checkpoints
from quorate.quorum.log.batch import BatchHeader
from quorate.quorum.log.epochs import NO_EPOCH, EpochCache
from quorate.quorum.log.errors import CorruptLog
from quorate.quorum.log.quarantine import copy_tail, rename_whole
from quorate.quorum.log.scan import SCAN_BYTES, is_torn, scan
from quorate.quorum.log.segment import Segment
from quorate.quorum.log.settings import LogSettings
from quorate.quorum.seams import Disk

STEP_BYTES = 4 * 1024 * 1024
"""Bytes that one step reads: some 20 ms if batches are small."""
ANY_EPOCH = 2**31 - 1
"""The default of `latest_unsaved_epoch`: any epoch is believed."""

logger = logging.getLogger("quorate.log")


@dataclass(slots=True)
class RecoveryReport:
    """The work of a recovery. All fields keep their defaults after a clean shutdown."""

    scanned_bytes: int = 0
    """Bytes of the valid batches that were read."""
    cut_bytes: int = 0
    """Bytes that were cut off, in all segments."""
    cut_at_offset: int | None = None
    """The offset at which the log was cut, None if it was not."""
    reason: str = ""
    """The fault at `cut_at_offset`, empty if the log was not cut."""


class Damage(NamedTuple):
    """The first fault in a segment: its position, the offset expected there, and the reason."""

    position: int
    offset: int
    reason: str


def recorded_start(saved_epochs: list[EpochOffset] | None, start_offset: int) -> int | None:
    """Return the offset at which a cleanly closed log began, None if no epochs were saved.

    `start_offset` is the log start offset of the checkpoint, 0 if it has none."""
    return max(start_offset, saved_epochs[0].offset) if saved_epochs else None


class LogRecovery:
    """One pass over the segments of a log that is being opened.

    The caller runs either `trust` or `check`. The pass changes the list `segments` in place.
    Invariant after it: the segments are contiguous, the last one is active, and `epochs` has the
    epochs of all batches. `trust` takes this invariant from the file names and the saved epochs.
    The thread that opens the log owns the object.
    """

    def __init__(
        self,
        segments: list[Segment],
        settings: LogSettings,
        trusted_offset: int,
        vouched_offset: int,
        saved_epochs: list[EpochOffset] | None,
    ) -> None:
        """Prepare a pass over `segments`, at least one, in offset order.

        `trusted_offset` is the offset below which nothing may be cut off. `vouched_offset` is the
        offset below which the saved epochs are right. `saved_epochs` is None if the epoch
        checkpoint is missing or damaged."""
        self.segments = segments
        self.trusted_offset = trusted_offset
        self.report = RecoveryReport()
        self.quarantine: Disk | None = None
        """The disk on which cut bytes are kept; None if they are not kept."""
        self.latest_unsaved_epoch = ANY_EPOCH
        self.unsynced: list[Segment] = []
        """The segments that recovery has read: a sync may not have covered all of their bytes."""
        self.epochs = EpochCache(saved_epochs or ())
        self._settings = settings
        self._vouched_offset = vouched_offset
        self._saved_epochs = saved_epochs
        self._stored = not segments[-1].is_active
        """False for a new segment, which is active immediately; True for an existing one, whose end
        is not known yet."""
        self._saved = EpochCache(saved_epochs or ())

    def trust(self, start_offset: int) -> IncrementalWork[None]:
        """Return the steps that load a log after a clean shutdown, without checking its batches.

        The steps read the headers after the last index entry. If the epoch checkpoint is missing or
        damaged, they read all headers. Raise CorruptLog if a segment is missing at the beginning or
        the end. A segment that is missing in between is only found by a read."""
        if self._stored:
            self.segments[-1].resume()
            if self._saved_epochs is None:
                yield from self._read_epochs(self.segments)
        self._require_beginning(start_offset)
        self._require_flushed()
        self._require_end(start_offset)

    def check(self) -> IncrementalWork[None]:
        """Return the steps that check all batches, from the segment of the trusted offset on.

        A torn end is cut off, and in a partition other damage too. If the epoch checkpoint is
        missing or damaged, the headers of the older segments are read as well. Raise CorruptLog for
        damage that must not be cut off."""
        if self._stored:
            first = 0
            while (
                first + 1 < len(self.segments)
                and self.segments[first + 1].base_offset < self.trusted_offset
            ):
                first += 1
            if self._saved_epochs is None:
                yield from self._read_epochs(self.segments[:first])
            self.epochs.truncate_to(self.segments[first].base_offset)
            yield from self._check_from(first)
            self.unsynced = self.segments[first:]
        self._require_flushed()

    def _require_end(self, start_offset: int) -> None:
        """Raise CorruptLog if the log ends below its start offset, which a clean shutdown rules
        out.

        After a crash this is no damage: the crash may take the unsynced end of a log whose records
        were deleted already."""
        last = self.segments[-1]
        if start_offset > last.next_offset:
            reason = (
                f"the log ends here, but {checkpoints.START_OFFSETS_NAME} says that it begins at "
                f"offset {start_offset} (if the checkpoint is wrong, remove the line of this log)"
            )
            raise CorruptLog(last.path, last.size, last.next_offset, reason)

    def write_again(self) -> None:
        """Write again what the segments hold from the trusted offset on. Block.

        A failed sync leaves pages that are readable and marked clean, but not on disk (fsyncgate,
        R45, tests/scenarios). A sync of this process would skip them. After the bytes are written
        again, the next sync covers them."""
        for segment in self.unsynced:
            position = segment.position_of(self.trusted_offset)
            while position < segment.size:
                data = segment.file.pread(SCAN_BYTES, position)
                segment.file.pwrite(data, position)
                position += len(data)
            segment.file.truncate(segment.size)

    def _check_from(self, first: int) -> IncrementalWork[None]:
        offset = self.segments[first].base_offset
        for index in range(first, len(self.segments)):
            segment = self.segments[index]
            damage: Damage | None = None
            if segment.base_offset != offset:
                damage = Damage(
                    0, offset, f"the next segment begins at offset {segment.base_offset}"
                )
                self._record_cut(segment, damage, torn=True)
                self._drop_from(index)
                break
            segment.begin_scan()
            damage = yield from self._scan(segment)
            offset = segment.next_offset
            if damage is not None:
                torn = not self._settings.flushed_is_acknowledged or is_torn(
                    segment, damage.position, damage.offset
                )
                self._record_cut(segment, damage, torn=torn)
                self.report.cut_bytes += segment.size - damage.position
                if self.quarantine is not None:
                    copy_tail(self.quarantine, segment, damage.position)
                segment.truncate_file(damage.position)
                self._drop_from(index + 1)
                break
        for segment in self.segments[first:-1]:
            segment.seal()
        if not self.segments[-1].is_active:  # the batches before the hole remain
            self.segments[-1].resume()
        if self.report.cut_at_offset is not None:
            logger.warning(
                "%s: recovery cut the log at offset %d; %d bytes %s; reason: %s",
                self.segments[-1].path,
                self.report.cut_at_offset,
                self.report.cut_bytes,
                "are kept in .damaged files" if self.quarantine else "were not flushed",
                self.report.reason,
            )

    def _scan(self, segment: Segment) -> IncrementalWork[Damage | None]:
        """Add the batches that are valid and continue the log. Return the first fault, None if all
        are."""
        paused_at = 0
        for position, header, intact in scan(segment):
            if position - paused_at >= STEP_BYTES:
                paused_at = position
                yield
            if header is None:
                return Damage(position, segment.next_offset, "no batch header")
            reason = "" if intact else "the batch fails its CRC-32C or is incomplete"
            if header.base_offset != segment.next_offset:
                reason = f"the batch has base offset {header.base_offset}"
            elif header.leader_epoch < self.epochs.latest:
                reason = f"leader epoch {header.leader_epoch} follows epoch {self.epochs.latest}"
            elif not self._may_be_its_epoch(header):
                reason = (
                    f"leader epoch {header.leader_epoch} differs from {checkpoints.EPOCHS_NAME}"
                )
            if reason:
                return Damage(position, segment.next_offset, reason)
            if header.leader_epoch >= 0:
                self.epochs.assign(header.leader_epoch, header.base_offset)
            segment.index_batch(position, header)
            self.report.scanned_bytes += header.size_bytes
        return None

    def _may_be_its_epoch(self, header: BatchHeader) -> bool:
        """Return True if the batch may have its leader epoch; see the module."""
        saved, epoch = self._saved.epoch_at(header.base_offset), header.leader_epoch
        if saved == epoch:
            return True
        if header.base_offset < self._vouched_offset:
            return saved == NO_EPOCH
        return epoch <= self.latest_unsaved_epoch

    def _record_cut(self, segment: Segment, damage: Damage, *, torn: bool) -> None:
        """Note that the log is cut at this damage. Raise CorruptLog if it must not be cut there."""
        if damage.offset < self.trusted_offset or not torn:
            raise CorruptLog(segment.path, damage.position, damage.offset, damage.reason)
        self.report.cut_at_offset = damage.offset
        self.report.reason = damage.reason

    def _drop_from(self, index: int) -> None:
        """Remove the segments from `index` on, newest first, so that a crash leaves a prefix of the
        log."""
        while len(self.segments) > index:
            segment = self.segments.pop()
            self.report.cut_bytes += segment.size
            if self.quarantine is not None:
                rename_whole(self.quarantine, segment)
            segment.remove()

    def _read_epochs(self, segments: list[Segment]) -> IncrementalWork[None]:
        for segment in segments:
            paused_at, offset = 0, segment.base_offset
            for position, header in segment.walk(0):
                if position - paused_at >= STEP_BYTES:
                    paused_at = position
                    yield
                if header.base_offset < offset:
                    reason = f"the batch has base offset {header.base_offset}"
                    raise CorruptLog(segment.path, position, offset, reason)
                offset = header.next_offset
                if header.leader_epoch > self.epochs.latest:
                    self.epochs.assign(header.leader_epoch, header.base_offset)

    def _require_beginning(self, start_offset: int) -> None:
        """Raise CorruptLog if segments are missing at the beginning.

        The saved epochs of a cleanly closed log, or the checkpoint, contain its start."""
        first = self.segments[0]
        started = recorded_start(self._saved_epochs, start_offset)
        if started is not None and started < first.base_offset:
            reason = (
                f"the log began at offset {started} (to give up the missing records, write "
                f"{first.base_offset} as its offset into {checkpoints.START_OFFSETS_NAME})"
            )
            raise CorruptLog(first.path, 0, started, reason)

    def _require_flushed(self) -> None:
        last = self.segments[-1]
        if last.next_offset < self.trusted_offset:
            raise CorruptLog(
                last.path,
                last.size,
                last.next_offset,
                f"the log ends here, but was flushed up to offset {self.trusted_offset}",
            )
