"""A metadata log's files, cut into slices that are read independently of each other.

A slice begins where the first pass (`first_pass.py`) saw a batch begin; a batch belongs to the
slice in which its first byte lies. Should the log have been cut back and written anew since then, a
slice finds its first batch by itself: the first place where a whole batch with a right CRC-32C
begins.

The log may be live: its size is taken once, and the last segment may end in a batch that is not
whole (still being written, or torn by a crash and never acknowledged): what stands before it is
what there is. A bad batch anywhere else is damage, and an error. What is read may reach beyond the
high watermark: an uncommitted tail can still be replaced by other records.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import BinaryIO

from quorate.quorum.analytics.errors import DamagedLog, NoMetadataLog
from quorate.quorum.analytics.first_pass import (
    FOREVER,
    Border,
    Undone,
    overlapping,
    pass_over,
    undone,
)
from quorate.quorum.ids import METADATA_TOPIC
from quorate.quorum.log.batch import (
    HEADER_BYTES,
    PREFIX_BYTES,
    BatchHeader,
    checksum_is_valid,
    read_header,
)
from quorate.quorum.log.errors import CorruptBatch

PARTITION_DIR = f"{METADATA_TOPIC}-0"
SEGMENT_NAME = re.compile(r"(\d{20})\.log")
SNAPSHOT_NAME = re.compile(r"(\d{20})-(\d{10})\.checkpoint")
SLICE_BYTES = 4 << 20
READ_AHEAD_BYTES = 1 << 16
MAGIC_BYTE, MAGIC_AT = b"\x02", 16


@dataclass(frozen=True, slots=True)
class SnapshotId:
    """`end_offset` is exclusive: the snapshot holds everything below it."""

    end_offset: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Slice:
    path: str
    start: int
    end: int
    size_bytes: int  # of the file, when the slices were planned
    may_be_torn: bool = False
    snapshot: SnapshotId | None = None
    first_offset: int = 0
    end_offset: int = FOREVER  # exclusive
    undone: tuple[Undone, ...] = ()
    """Transactions without effect that reach into this slice."""


def metadata_dir(directory: str) -> Path:
    """`directory` is the metadata partition's own, or a node's log directory that holds it."""
    given = Path(directory.removeprefix("file:"))
    for each in (given / PARTITION_DIR, given):
        if each.is_dir() and any(SEGMENT_NAME.fullmatch(name) for name in os.listdir(each)):
            return each
    raise NoMetadataLog(
        f"{given} holds no metadata log: give a node's log directory (the one that contains "
        f"{PARTITION_DIR}) or that {PARTITION_DIR} directory itself"
    )


def log_slices(
    directory: Path, slice_bytes: int = SLICE_BYTES, *, from_offset: int = 0
) -> list[Slice]:
    """`from_offset`: records below it are left out."""
    segments = _named(directory, SEGMENT_NAME)
    passes = [pass_over(path, slice_bytes) for path in segments]
    without_effect = undone(marker for each in passes for marker in each.markers)
    slices: list[Slice] = []
    for path, following, passed in zip_longest(segments, segments[1:], passes):
        last = FOREVER if following is None else int(following.stem)
        borders = passed.borders or [Border(0, int(path.stem))]
        size = path.stat().st_size
        ends = [*((each.position, each.base_offset) for each in borders[1:]), (size, last)]
        slices += [
            Slice(
                str(path),
                border.position,
                end,
                size,
                may_be_torn=following is None,
                first_offset=max(border.base_offset, from_offset),
                end_offset=end_offset,
                undone=overlapping(without_effect, border.base_offset, end_offset),
            )
            for border, (end, end_offset) in zip(borders, ends, strict=True)
            if size and end_offset > from_offset
        ]
    return slices


def snapshot_slices(directory: Path, *, only_base: bool = False) -> list[Slice]:
    """Of every snapshot, or of the one with which the history begins."""
    if only_base:
        base = base_snapshot(directory)
        return [] if base is None else [base]
    slices = []
    for path in _named(directory, SNAPSHOT_NAME):
        end_offset, epoch = (int(part) for part in path.stem.split("-"))
        size = path.stat().st_size
        slices.append(Slice(str(path), 0, size, size, snapshot=SnapshotId(end_offset, epoch)))
    return slices


def history_slices(directory: Path, slice_bytes: int = SLICE_BYTES) -> list[Slice]:
    """The whole known history: the log, or a snapshot and what of the log follows it."""
    base = base_snapshot(directory)
    if base is None or base.snapshot is None:
        return log_slices(directory, slice_bytes)
    from_offset = base.snapshot.end_offset
    return [base, *log_slices(directory, slice_bytes, from_offset=from_offset)]


def base_snapshot(directory: Path) -> Slice | None:
    """What a log begins with whose older segments were deleted: the first snapshot that reaches
    its first segment. It may end inside of that: Kafka deletes whole segments."""
    start = log_start_offset(directory)
    for piece in snapshot_slices(directory) if start else ():
        if piece.snapshot is not None and piece.snapshot.end_offset >= start:
            return piece
    return None


def log_start_offset(directory: Path) -> int:
    """A segment is named by its first offset."""
    return int(_named(directory, SEGMENT_NAME)[0].stem)


def _named(directory: Path, pattern: re.Pattern[str]) -> list[Path]:
    return [directory / name for name in sorted(os.listdir(directory)) if pattern.fullmatch(name)]


def read_batches(piece: Slice) -> Iterator[tuple[BatchHeader, bytes, int]]:
    """Every batch that begins in the slice, checked: its header, a buffer, and where in it the
    batch begins; later buffers hold the same at the same place. And that a good batch follows the
    last, because the slice that this one belongs to would look past it for its own first."""
    with open(piece.path, "rb") as file:
        window = _Window(file, piece)
        position = 0 if piece.start == 0 else window.next_batch(piece.start, piece.end)
        while position is not None and position < piece.size_bytes:
            header = window.batch_at(position)
            if header is None:
                window.refuse_unless_torn(position)
                return
            if position >= piece.end:
                return
            if header.base_offset + header.last_offset_delta >= piece.first_offset:
                yield header, window.data, position - piece.start
            position += PREFIX_BYTES + header.length


class _Window:
    """The bytes of a slice, and of as much behind it as its last batch needs."""

    def __init__(self, file: BinaryIO, piece: Slice) -> None:
        self._file = file
        self._piece = piece
        file.seek(piece.start)
        self.data = file.read(piece.end - piece.start)
        self._complete = False

    def batch_at(self, position: int) -> BatchHeader | None:
        """None when no whole batch with a right checksum begins there."""
        first = position - self._piece.start
        if first + HEADER_BYTES > len(self.data):
            self._reach(position + HEADER_BYTES)
        try:
            header = read_header(self.data, first)
        except CorruptBatch:
            return None
        if header.last_offset_delta != header.record_count - 1 or header.record_count < 1:
            return None
        size_bytes = header.size_bytes
        if position + size_bytes > self._piece.size_bytes:
            return None
        if first + size_bytes > len(self.data):
            self._reach(position + size_bytes)
            if first + size_bytes > len(self.data):
                return None
        return header if checksum_is_valid(self.data, first, header) else None

    def next_batch(self, position: int, end: int) -> int | None:
        """Where the first batch at or after `position` and before `end` begins."""
        start = self._piece.start
        self._reach(end + MAGIC_AT)
        while True:
            magic = self.data.find(MAGIC_BYTE, position - start + MAGIC_AT)
            position = magic + start - MAGIC_AT
            if magic < 0 or position >= end:
                return None
            if self.batch_at(position) is not None:
                return position
            position += 1

    def refuse_unless_torn(self, position: int) -> None:
        piece = self._piece
        if piece.may_be_torn and self.next_batch(position + 1, piece.size_bytes) is None:
            return
        raise DamagedLog(
            f"{self._piece.path}: the batch at byte {position} is damaged, and it is not the torn "
            "end of the log: read the copy of another node, or restore this one from it"
        )

    def _reach(self, end: int) -> None:
        missing = min(end, self._piece.size_bytes) - self._piece.start - len(self.data)
        if missing > 0 and not self._complete:
            more = self._file.read(max(missing, READ_AHEAD_BYTES))
            self._complete = len(more) < missing
            self.data += more
