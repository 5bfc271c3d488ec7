"""The check of one log's directory without opening the log: it reads everything and changes
nothing.

The check covers all segments, not only those above the trusted offset, and after a fault it
continues with the next segment. The rules for batches are those of `recovery.py`, with one
exception: leader epochs above the trusted offset need not agree with the checkpoint.

A start cuts off the batches with a `TORN` result. A `DAMAGED` result has other consequences:

- Below the trusted offset the start refuses the log, if it reads that far.
- Above the trusted offset it refuses a metadata log, and cuts off the rest of a partition's log.
- After a clean shutdown it checks no batches. A later read of the batch raises CorruptLog.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest

from quorate.quorum.log.batches.batch import BatchHeader
from quorate.quorum.log.checking.check_result import CheckResult, Kind
from quorate.quorum.log.checking.index_check import IndexCheck
from quorate.quorum.log.files import checkpoints
from quorate.quorum.log.files.errors import CorruptCheckpoint
from quorate.quorum.log.files.flushed_marker import FLUSHED_MARKER_NAME, decode_marker
from quorate.quorum.log.files.names import (
    LOG_SUFFIX,
    offset_of,
    segment_file,
)
from quorate.quorum.log.opening.recovery import recorded_start
from quorate.quorum.log.segments.epochs import NO_EPOCH, EpochCache
from quorate.quorum.log.segments.scan import is_torn, scan
from quorate.quorum.seams import Disk

FROM_PEERS = (
    "if another replica is in sync, let it lead the partition and start this broker, which fetches "
    "the records from the leader; otherwise restore this file from a backup"
)
"""The advice for damage of a partition."""
CUT_AT_START = (
    "it was never acknowledged; the next start cuts it off with all that follows; --repair "
    "does so now"
)
"""The advice for a torn end."""
REBUILT = "the next start reads the batches instead; --repair rewrites it"
"""The advice for a wrong index or wrong leader epochs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogExpectations:
    """The state in which the log should be, and the meaning of a hole in it."""

    metadata: bool
    """True for the metadata log: flushed means acknowledged, and a marker holds the flushed
    offset."""
    trusted_offset: int = 0
    """Everything below was flushed. A valid flushed marker of the metadata log replaces this value.
    """
    start_offset: int = 0
    """Records below it may be missing."""
    clean: bool = False
    """True after a clean shutdown: no batch can be torn."""
    compacted: bool = False
    """True if offsets may be missing between batches, because a log cleaner removed batches."""
    way_out: str = FROM_PEERS
    """The advice in the results of kind DAMAGED."""


class SegmentFile:
    """The data file of a segment, opened only for reading."""

    def __init__(self, disk: Disk, directory: str, base_offset: int) -> None:
        self.base_offset = base_offset
        self.path = segment_file(directory, base_offset, LOG_SUFFIX)
        self.file = disk.open(self.path, writable=False)
        self.size = self.file.size()


class LogCheck:
    """The check of one log. `run` fills the results and the facts about the log.

    `start_offset` is the base offset of the first segment. `end_offset` is the offset after the
    last valid batch, or the base offset of the last segment if that is higher. Both are 0 if there
    is no segment. `batches` is the number of valid batches.
    """

    def __init__(self, disk: Disk, directory: str, expected: LogExpectations) -> None:
        """Check the log in `directory`, which must exist."""
        self.results: list[CheckResult] = []
        self.start_offset = self.end_offset = 0
        self.batches = 0
        self.epochs = EpochCache()
        """The leader epochs of the batches."""
        self.wrong_indexes: list[int] = []
        """Base offsets of undamaged segments whose indexes contradict them."""
        self._disk = disk
        self._directory = directory
        self._expected = expected
        self._trusted_offset = expected.trusted_offset
        self._saved: EpochCache | None = None

    def run(self) -> None:
        """Read and check everything. Block. Raise OSError, and CorruptCheckpoint for a file that is
        too large."""
        names = self._disk.list(self._directory)
        if self._expected.metadata:
            self._read_marker(names)
        self._read_epochs(names)
        found = (offset_of(name) for name in names if name.endswith(LOG_SUFFIX))
        bases = sorted(base for base in found if base is not None)
        if bases:
            self.start_offset = self.end_offset = bases[0]
            self._require_beginning()
        whole = True
        for base, following in zip_longest(bases, bases[1:]):
            if base != self.end_offset and whole:
                self._hole(base)
            self.end_offset = max(self.end_offset, base)
            whole = self._segment(base, following)
        if whole and self.end_offset < self._trusted_offset:
            self._shortened(bases)

    # -- what is beside the segments -------------------------------------------------------------

    def _read_marker(self, names: list[str]) -> None:
        if FLUSHED_MARKER_NAME not in names:
            return
        path = f"{self._directory}/{FLUSHED_MARKER_NAME}"
        offset = decode_marker(checkpoints.read_small(self._disk, path) or b"")
        if offset is None:
            self._add(
                Kind.DERIVED,
                path,
                "is not a valid flushed-offset marker",
                "the next start ignores it, and every torn batch counts as not flushed",
            )
        else:
            self._trusted_offset = offset

    def _read_epochs(self, names: list[str]) -> None:
        path = checkpoints.epochs_path(self._directory)
        if checkpoints.EPOCHS_NAME not in names:
            return
        try:
            entries = checkpoints.read_epochs(self._disk, self._directory)
        except CorruptCheckpoint:
            entries = None
        if entries is None:
            self._add(Kind.DERIVED, path, "is not a valid list of leader epochs", REBUILT)
        else:
            self._saved = EpochCache(entries)

    # -- segments --------------------------------------------------------------------------------

    def _segment(self, base_offset: int, following: int | None) -> bool:
        """Check a segment and its indexes. Return True if all of its batches are valid. `following`
        is the base offset of the next segment, None for the last one."""
        is_last = following is None
        segment = SegmentFile(self._disk, self._directory, base_offset)
        indexes = IndexCheck(self._disk, self._directory, base_offset, is_last=is_last)
        try:
            damage = self._batches(segment, indexes, following)
        finally:
            segment.file.close()
        if damage is None:
            for suffix, what in indexes.wrong(self.end_offset):
                path = segment_file(self._directory, base_offset, suffix)
                if is_last and not self._expected.clean:  # its index is written at close
                    self._add(Kind.NOTE, path, f"{what}; the next start ignores it", "")
                    continue
                self._add(Kind.DERIVED, path, what, REBUILT)
                self.wrong_indexes.append(base_offset)
        return damage is None

    def _batches(
        self, segment: SegmentFile, indexes: IndexCheck, following: int | None
    ) -> CheckResult | None:
        for position, header, intact in scan(segment):
            reason = self._contradiction(header, intact, following)
            if header is None or reason:
                damage = self._judged(segment, position, reason)
                self.results.append(damage)
                return damage
            if header.leader_epoch > self.epochs.latest:
                self.epochs.assign(header.leader_epoch, header.base_offset)
            indexes.add_batch(position, header)
            self.end_offset = header.next_offset
            self.batches += 1
        return None

    def _contradiction(
        self, header: BatchHeader | None, intact: bool, following: int | None
    ) -> str:
        """Return the fault of a batch, empty if it is valid and continues the log."""
        if header is None:
            return "no batch header"
        expected = self.end_offset
        if header.base_offset < expected or (
            header.base_offset > expected and not self._expected.compacted
        ):
            return f"the batch has base offset {header.base_offset}"
        if self._expected.compacted and following is not None and header.next_offset > following:
            return f"the batch has base offset {header.base_offset}, the next segment {following}"
        if header.leader_epoch < self.epochs.latest:
            return f"leader epoch {header.leader_epoch} follows epoch {self.epochs.latest}"
        if not intact:
            return "the batch fails its CRC-32C or is incomplete"
        if header.base_offset < self._trusted_offset and self._saved is not None:
            saved = self._saved.epoch_at(header.base_offset)
            if saved not in (header.leader_epoch, NO_EPOCH):
                return (
                    f"leader epoch {header.leader_epoch} differs from {saved} in "
                    f"{checkpoints.EPOCHS_NAME}"
                )
        return ""

    def _judged(self, segment: SegmentFile, position: int, reason: str) -> CheckResult:
        offset = self.end_offset
        if not self._is_acknowledged(offset) and is_torn(segment, position, offset):
            return CheckResult(Kind.TORN, segment.path, reason, CUT_AT_START, position, offset)
        return CheckResult(
            Kind.DAMAGED, segment.path, reason, self._expected.way_out, position, offset
        )

    def _hole(self, base_offset: int) -> None:
        path = segment_file(self._directory, base_offset, LOG_SUFFIX)
        what = f"the segment before it ends at offset {self.end_offset}; a segment is missing"
        if base_offset < self.end_offset:
            what = f"the segment before it ends at offset {self.end_offset}, after this one begins"
        kind, way_out = Kind.TORN, CUT_AT_START
        if self._is_acknowledged(self.end_offset):
            kind, way_out = Kind.DAMAGED, self._expected.way_out
        self._add(kind, path, what, way_out, 0, base_offset)

    def _require_beginning(self) -> None:
        saved = self._saved.entries if self._saved else None
        started = recorded_start(saved, self._expected.start_offset)
        if self._expected.clean and started is not None and started < self.start_offset:
            path = segment_file(self._directory, self.start_offset, LOG_SUFFIX)
            what = f"the log begins here, but began at offset {started}; a segment is missing"
            self._add(Kind.DAMAGED, path, what, self._expected.way_out, 0, started)

    def _is_acknowledged(self, offset: int) -> bool:
        return self._expected.clean or offset < self._trusted_offset

    def _shortened(self, bases: list[int]) -> None:
        path = self._directory
        if bases:
            path = segment_file(self._directory, bases[-1], LOG_SUFFIX)
        trusted = self._trusted_offset
        what = f"the log ends here, but was flushed up to offset {trusted}"
        self._add(Kind.DAMAGED, path, what, self._expected.way_out, -1, self.end_offset)

    def _add(
        self, kind: Kind, path: str, what: str, way_out: str, position: int = -1, offset: int = -1
    ) -> None:
        self.results.append(CheckResult(kind, path, what, way_out, position, offset))
