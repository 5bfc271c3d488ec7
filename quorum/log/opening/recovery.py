"""The checks of a log that is opened: the end of a clean log, and every byte that a crash may tear.

After a clean shutdown the end is found from the index of the last segment. Otherwise recovery reads
and checks every batch from the trusted offset on. The batches are one stream over all segments,
because a crash may keep any part of the bytes that were not flushed.

Everything below the trusted offset was flushed. The trusted offset of a partition is its recovery
point. That of the metadata log is its flushed marker, or its recovery point if that is higher. If
other replicas have all acknowledged records (`set_aside` of `OpenOptions`), the trusted offset is
0. Then every batch is checked, and damage at any offset may be cut off.

| fault                                            | consequence                                  |
|--------------------------------------------------|----------------------------------------------|
| below the trusted offset: damage, a missing      | CorruptLog, because those bytes were durable |
| segment, or the end of the log                   |                                              |
| above it, in the metadata log: a torn batch, or  | The log is cut there.                        |
| a missing segment                                |                                              |
| above it, in the metadata log: other damage      | CorruptLog, because the bytes may have been  |
|                                                  | flushed: the marker is only a lower bound    |
| above it, in a partition: any fault              | The log is cut there, because records are    |
|                                                  | acknowledged before they are flushed here.   |
| anywhere, with `set_aside`                       | The log is cut there. The cut bytes are kept |
|                                                  | in `.damaged` files.                         |

Recovery begins with the last segment that begins below the trusted offset. It does not check older
segments.

A batch's CRC does not cover its leader epoch. Recovery therefore compares the epoch with the saved
epochs, which are those of the epoch checkpoint. Kafka accepts any epoch. The saved epochs are right
below the vouched offset, which is the trusted offset that the log has without `set_aside`. Three
rules make an epoch damage:

- At any offset: it is lower than the epoch of the batch before.
- Below the vouched offset: it differs from the epoch that is saved for the batch's offset. If none
  is saved there, any epoch is accepted.
- Above the vouched offset: it differs from the saved epoch, and is above `latest_unsaved_epoch`,
  which the owner of the log sets. For the metadata log this is the epoch of the saved election.

It does not cover the base offset either. In a log with gaps, a batch whose base offset is too high
looks right until the next batch has a lower one. Either of the two is damaged then. If the batch
before both of them fits the lower offset, the fault is at the first of the two. Otherwise several
batches contradict the lower offset, and the fault is there. A batch that reaches beyond the base
offset of the next segment is damaged, too. If a segment ends below the next one, its last batch may
have a base offset that is too low. With `set_aside` the log is cut before that batch.

A cut removes the fault and everything after it, before anything is appended. Otherwise old bytes
could follow a new batch (R43 in tests/scenarios). `scan.py` distinguishes a torn batch from damage.

To read gigabytes takes many seconds. Recovery therefore works in steps, and nothing else uses the
log meanwhile.
"""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass
from typing import NamedTuple

from quorate.quorum.ids import EpochOffset
from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.log.batches.batch import BatchHeader
from quorate.quorum.log.files import checkpoints
from quorate.quorum.log.files.errors import CorruptLog
from quorate.quorum.log.files.settings import LogSettings
from quorate.quorum.log.segments.epochs import NO_EPOCH, EpochCache
from quorate.quorum.log.segments.quarantine import copy_tail, rename_whole
from quorate.quorum.log.segments.scan import SCAN_BYTES, is_torn, scan
from quorate.quorum.log.segments.segment import Segment
from quorate.quorum.seams import Disk

STEP_BYTES = 4 * 1024 * 1024
"""Bytes of one segment after which a step ends. They take some 20 ms if batches are small."""
NO_HEADER = "no batch header"
"""The fault at bytes that cannot begin a batch, such as preallocated zeros."""
ANY_EPOCH = 2**31 - 1
"""The default of `latest_unsaved_epoch`: any epoch is accepted."""

logger = logging.getLogger("quorate.log")


@dataclass(slots=True)
class RecoveryReport:
    """The work of one recovery. After a clean shutdown all fields have their defaults."""

    scanned_bytes: int = 0
    """Bytes of the valid batches that were read."""
    cut_bytes: int = 0
    """Bytes that were cut off, in all segments."""
    cut_at_offset: int | None = None
    """The offset at which the log was cut, or None if it was not."""
    reason: str = ""
    """The fault at `cut_at_offset`, empty if the log was not cut."""


class Damage(NamedTuple):
    """The first fault in a segment: its byte position, the offset expected there, the reason."""

    position: int
    offset: int
    reason: str


def recorded_start(saved_epochs: list[EpochOffset] | None, start_offset: int) -> int | None:
    """Return the offset at which a cleanly closed log began, or None if no epochs were saved.

    If the first segment begins above this offset, segments are missing. `start_offset` is the log
    start offset in the checkpoint, or 0 if there is none."""
    return max(start_offset, saved_epochs[0].offset) if saved_epochs else None


class LogRecovery:
    """One pass over the segments of a log that is being opened.

    The caller may first set these attributes:

    - `latest_unsaved_epoch`, described in the module.
    - `quarantine`: the disk on which cut bytes are kept.
    - `gaps`: True if offsets may be missing between the batches of a segment.

    It then runs either `trust` or `check`, which changes the list `segments` in place. The other
    results are `epochs`, `report` and `unsynced`, the segments whose bytes may not be on disk. The
    thread that opens the log owns the object.

    Invariant after the pass: the segments are contiguous, the last one is active, and `epochs` has
    the epochs of all batches. `check` reads the batches for this. `trust` relies on the file names
    and the saved epochs.
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
        offset below which the saved epochs are right. It is higher than `trusted_offset` only with
        `set_aside`. `saved_epochs` is None if the epoch checkpoint is missing or damaged."""
        self.segments = segments
        self.trusted_offset = trusted_offset
        self.report = RecoveryReport()
        self.quarantine: Disk | None = None
        """The disk on which cut bytes are kept; None if they are not kept."""
        self.latest_unsaved_epoch = ANY_EPOCH
        """The highest epoch that is accepted without a saved epoch, above the vouched offset."""
        self.gaps = False
        """True if offsets may be missing between the batches of a segment (`offset_gaps.py`)."""
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
        damaged, they read all headers. They raise CorruptLog if a segment is missing at the
        beginning or the end. A segment that is missing in between is found only by a later read."""
        if self._stored:
            self.segments[-1].resume()
            if self._saved_epochs is None:
                yield from self._read_epochs(self.segments)
        self._require_beginning(start_offset)
        self._require_flushed()
        self._require_end(start_offset)

    def check(self) -> IncrementalWork[None]:
        """Return the steps that check all batches, from the last segment that begins below the
        trusted offset.

        The steps cut the log at a fault that may be cut off, and raise CorruptLog for any other
        (see the module). They do not check the batches of older segments. If the epoch checkpoint
        is missing or damaged, they read the headers of those batches for the epochs."""
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
        """Write the bytes from the trusted offset on once more, unchanged. Block.

        Call it for the metadata log, after `check` and before the first sync. If a sync failed in
        an earlier process, the page cache may hold bytes that are not on disk but are marked clean
        (R45 in tests/scenarios). A sync would skip them. After this call the next sync covers them.
        """
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
            damage = yield from self._scan(segment, self._base_offset_after(index))
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
            zeros = self._settings.preallocate and self.report.reason == NO_HEADER
            logger.log(
                logging.INFO if zeros else logging.WARNING,
                "%s: recovery cut the log at offset %d; %d bytes %s; reason: %s",
                self.segments[-1].path,
                self.report.cut_at_offset,
                self.report.cut_bytes,
                "are kept in .damaged files"
                if self.quarantine
                else ("were preallocated or not flushed" if zeros else "were not flushed"),
                self.report.reason,
            )

    def _base_offset_after(self, index: int) -> float:
        """Return the base offset of the segment after this one, infinity if this is the last."""
        return self.segments[index + 1].base_offset if index + 1 < len(self.segments) else math.inf

    def _scan(self, segment: Segment, limit: float) -> IncrementalWork[Damage | None]:
        """Add the batches that are valid, continue the log and end at `limit` at most. Return the
        first fault, or None if all batches are added."""
        damage = yield from self._add_batches(segment, segment.size, limit)
        if damage is not None and damage.offset < segment.next_offset:
            # The batch that was added last is in doubt. The others are added once more without it.
            self.epochs.truncate_to(segment.base_offset)
            segment.begin_scan()
            yield from self._add_batches(segment, damage.position, limit)
        return damage

    def _add_batches(
        self, segment: Segment, size: int, limit: float
    ) -> IncrementalWork[Damage | None]:
        """Add the valid batches of the first `size` bytes. Return the first fault in them, or None.
        The fault may be at the batch that was added last."""
        paused_at = 0
        last = Damage(0, segment.base_offset, "")
        for position, header, intact in scan(segment):
            if position >= size:
                break
            if position - paused_at >= STEP_BYTES:
                paused_at = position
                yield
            if header is None:
                return Damage(position, segment.next_offset, NO_HEADER)
            reason = "" if intact else "the batch fails its CRC-32C or is incomplete"
            missing = self.gaps and header.base_offset > segment.next_offset
            if not segment.may_hold(header) or not (
                missing or header.base_offset == segment.next_offset
            ):
                reason = f"the batch has base offset {header.base_offset}"
                if self.gaps and intact and last.offset <= header.base_offset:
                    return last
            elif self.gaps and header.next_offset > limit:
                reason = f"the batch has base offset {header.base_offset}, the next segment {limit}"
            elif header.leader_epoch < self.epochs.latest:
                reason = f"leader epoch {header.leader_epoch} follows epoch {self.epochs.latest}"
            elif not self._may_be_its_epoch(header):
                reason = (
                    f"leader epoch {header.leader_epoch} differs from {checkpoints.EPOCHS_NAME}"
                )
            if reason:
                return Damage(position, segment.next_offset, reason)
            if header.leader_epoch > self.epochs.latest:
                self.epochs.assign(header.leader_epoch, self._epoch_start(header, segment))
            reason = f"the batch has base offset {header.base_offset}, and the next one a lower one"
            last = Damage(position, segment.next_offset, reason)
            segment.index_batch(position, header)
            self.report.scanned_bytes += header.size_bytes
        if self.gaps and self.quarantine and last.reason and segment.next_offset < limit < math.inf:
            return last._replace(reason=f"the next segment begins at {limit}, not where it ends")
        return None

    def _epoch_start(self, header: BatchHeader, segment: Segment) -> int:
        """Return the offset at which the epoch of its first batch began.

        It is the saved one if compaction has removed the batches in between. A later offset would
        hide from a follower that its records there are of an earlier epoch (KIP-279)."""
        for saved in self._saved.entries:
            if saved.epoch == header.leader_epoch:
                return min(max(saved.offset, segment.next_offset), header.base_offset)
        return header.base_offset

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
