"""What is on disk when a log is opened, and what may be believed of it.

Closed in order: the end is found from the last segment's index. Otherwise every batch from the
trusted offset on (the recovery point, or the marker of what was flushed) is read and checked, as
one stream over all segments, for a crash may keep any part of what was not synced:

| found                                       | then                                           |
|---------------------------------------------|------------------------------------------------|
| damage, a hole, the end: below that offset  | CorruptLog: it was durable, so it is not torn  |
| above it, where flushed means acknowledged  | torn: cut. Whole, yet wrong: CorruptLog        |
| above it, in a partition                    | cut: its ISR acknowledged, not this disk       |
| anywhere, where peers have it all           | cut, and set aside                             |

The leader epoch stands outside of a batch's CRC. Below that offset the saved epochs vouch for it.
Above it they may be out of date: what differs from them is believed as far as the owner says, which
is not at all where peers have the records. (Kafka believes any epoch.)

A cut takes everything behind it along, and the file is truncated before anything is appended
(R43). A batch is torn when the file ends within it or the part of it in some sector is all zero:
a sector that was never written. Damage that keeps every sector filled is no torn write.

Reading gigabytes takes many seconds, so it goes in steps; nobody else has the log meanwhile.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import NamedTuple

from quorate.quorum.ids import EpochOffset
from quorate.quorum.log import checkpoints
from quorate.quorum.log.batch import BatchHeader
from quorate.quorum.log.epochs import NO_EPOCH, EpochCache
from quorate.quorum.log.errors import CorruptLog
from quorate.quorum.log.quarantine import copy_tail, rename_whole
from quorate.quorum.log.scan import SCAN_BYTES, is_torn, scan
from quorate.quorum.log.segment import Segment
from quorate.quorum.log.settings import LogSettings
from quorate.quorum.seams import Disk
from quorate.quorum.steps import Steps

STEP_BYTES = 4 * 1024 * 1024
"""Some 20 ms, if batches are small."""
ANY_EPOCH = 2**31 - 1

logger = logging.getLogger("quorate.log")


@dataclass(slots=True)
class RecoveryReport:
    """What an unclean start did."""

    scanned_bytes: int = 0
    cut_bytes: int = 0
    cut_at_offset: int | None = None
    reason: str = ""


class Damage(NamedTuple):
    position: int
    offset: int
    reason: str


def beginning(saved_epochs: list[EpochOffset] | None, start_offset: int) -> int | None:
    """Where a log began that was closed in order, with `start_offset` in the checkpoint; None when
    that is not known."""
    return max(start_offset, saved_epochs[0].offset) if saved_epochs else None


class LogRecovery:
    """One pass over the segments of a log that is opened; it changes the list in place."""

    def __init__(
        self,
        segments: list[Segment],
        settings: LogSettings,
        trusted_offset: int,
        vouched_offset: int,
        saved_epochs: list[EpochOffset] | None,
    ) -> None:
        self.segments = segments
        self.trusted_offset = trusted_offset
        self.report = RecoveryReport()
        self.quarantine: Disk | None = None
        """Where what is cut is kept."""
        self.latest_unsaved_epoch = ANY_EPOCH
        self.unsynced: list[Segment] = []
        self.epochs = EpochCache(lambda: segments[-1].next_offset, saved_epochs or ())
        self._settings = settings
        self._vouched_offset = vouched_offset
        self._saved_epochs = saved_epochs
        self._stored = not segments[-1].is_active
        """A new segment is active at once; one that is found is not, until its end is known."""
        self._saved = EpochCache(lambda: 0, saved_epochs or ())

    def trust(self, start_offset: int) -> Steps[None]:
        if self._stored:
            self.segments[-1].resume()
            if self._saved_epochs is None:
                yield from self._read_epochs(self.segments)
        self._require_beginning(start_offset)
        self._require_flushed()
        self._require_end(start_offset)

    def check(self) -> Steps[None]:
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
        """A crash may take the end of a log whose records were deleted already. A clean end does
        not."""
        last = self.segments[-1]
        if start_offset > last.next_offset:
            reason = (
                f"the log ends here, but {checkpoints.START_OFFSETS_NAME} says that it begins at "
                f"offset {start_offset} (if that is wrong, take the log's line out of it)"
            )
            raise CorruptLog(last.path, last.size, last.next_offset, reason)

    def write_again(self) -> None:
        """A sync that failed leaves pages that can be read, are not on disk and count as clean; the
        next process's sync would have nothing to do (fsyncgate, R45). Once written they have."""
        for segment in self.unsynced:
            position = segment.position_of(self.trusted_offset)
            while position < segment.size:
                data = segment.file.pread(SCAN_BYTES, position)
                segment.file.pwrite(data, position)
                position += len(data)
            segment.file.truncate(segment.size)

    def _check_from(self, first: int) -> Steps[None]:
        offset = self.segments[first].base_offset
        for index in range(first, len(self.segments)):
            segment = self.segments[index]
            damage: Damage | None = None
            if segment.base_offset != offset:
                damage = Damage(0, offset, f"the log goes on at offset {segment.base_offset}")
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
        if not self.segments[-1].is_active:  # what came before the first hole goes on
            self.segments[-1].resume()
        if self.report.cut_at_offset is not None:
            logger.warning(
                "%s: cut at offset %d, %d bytes %s: %s",
                self.segments[-1].path,
                self.report.cut_at_offset,
                self.report.cut_bytes,
                "are set aside" if self.quarantine else "were not synced",
                self.report.reason,
            )

    def _scan(self, segment: Segment) -> Steps[Damage | None]:
        """Take batches as long as they are whole and continue the log."""
        paused_at = 0
        for position, header, intact in scan(segment):
            if position - paused_at >= STEP_BYTES:
                paused_at = position
                yield
            if header is None:
                return Damage(position, segment.next_offset, "no batch header")
            reason = "" if intact else "the batch fails its CRC-32C or is cut"
            if header.base_offset != segment.next_offset:
                reason = f"the batch says offset {header.base_offset}"
            elif header.leader_epoch < self.epochs.latest:
                reason = f"leader epoch {header.leader_epoch} follows {self.epochs.latest}"
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
        saved, epoch = self._saved.epoch_at(header.base_offset), header.leader_epoch
        if saved == epoch:
            return True
        if header.base_offset < self._vouched_offset:
            return saved == NO_EPOCH
        return epoch <= self.latest_unsaved_epoch

    def _record_cut(self, segment: Segment, damage: Damage, *, torn: bool) -> None:
        if damage.offset < self.trusted_offset or not torn:
            raise CorruptLog(segment.path, damage.position, damage.offset, damage.reason)
        self.report.cut_at_offset = damage.offset
        self.report.reason = damage.reason

    def _drop_from(self, index: int) -> None:
        """Newest first: a crash in between leaves a prefix."""
        while len(self.segments) > index:
            segment = self.segments.pop()
            self.report.cut_bytes += segment.size
            if self.quarantine is not None:
                rename_whole(self.quarantine, segment)
            segment.remove()

    def _read_epochs(self, segments: list[Segment]) -> Steps[None]:
        for segment in segments:
            paused_at = 0
            for position, header in segment.walk(0):
                if position - paused_at >= STEP_BYTES:
                    paused_at = position
                    yield
                if header.leader_epoch > self.epochs.latest:
                    self.epochs.assign(header.leader_epoch, header.base_offset)

    def _require_beginning(self, start_offset: int) -> None:
        """A log that was closed in order had its start in its epochs, or in the checkpoint."""
        first = self.segments[0]
        started = beginning(self._saved_epochs, start_offset)
        if started is not None and started < first.base_offset:
            reason = (
                f"the log began at offset {started} (to give up what is missing, have "
                f"{checkpoints.START_OFFSETS_NAME} say {first.base_offset})"
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
