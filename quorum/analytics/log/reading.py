"""The batches of one slice of a log, verified.

A slice that does not begin with a batch searches for its first one: the first position of a whole
batch with a correct CRC-32C. The reader of a slice holds its bytes in memory, and those of the rest
of its last batch. It searches for the end of damage in small steps. A batch of more than
MAX_BATCH_BYTES counts as damaged, because a damaged length must not fill the memory of a task.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import IO

from crc32c import crc32c

from quorate.quorum.analytics.log.damage import DAMAGED_BATCH, GAP, Damage, Found, refuse
from quorate.quorum.analytics.log.files import name_of, opened
from quorate.quorum.analytics.log.first_pass import FOREVER
from quorate.quorum.analytics.log.segments import SEGMENT_NAME, Slice
from quorate.quorum.log.batches.batch import (
    CRC_FROM,
    HEADER,
    HEADER_BYTES,
    MAGIC,
    MIN_LENGTH,
    PREFIX_BYTES,
    BatchHeader,
)

READ_AHEAD_BYTES = 1 << 16
"""The minimum number of bytes that are read if a batch reaches beyond the bytes in memory."""
MAGIC_BYTE, MAGIC_AT = b"\x02", 16
MAX_BATCH_BYTES = 128 << 20
"""The size above which a batch counts as damaged. Kafka's controllers write at most 8 MiB."""
SEARCH_BYTES = 1 << 20
"""The number of bytes in which one step searches for the end of damage."""


def read_batches(piece: Slice, found: Found = refuse) -> Iterator[tuple[BatchHeader, bytes, int]]:
    """Yield (header, buffer, position in the buffer) for every batch that begins in the slice.

    Batches that end below `first_offset` are left out. If the slice begins inside a batch, the
    first one is the next batch. The checksum of each batch is verified. Later buffers hold the same
    bytes at the same positions.

    Also verify that a good batch follows the last one, and that the offsets continue. The scan for
    the first batch of the next slice would skip a damaged batch, so this slice must find it. Call
    `found` for each damage, except a torn end. The default raises DamagedLog. If `found` returns,
    continue with the next good batch."""
    with opened(piece.path) as file:
        window = _Window(file, piece)
        position = 0 if piece.start == 0 else window.next_batch(piece.start, piece.end)
        expected = _first_expected(piece)
        while position is not None and position < piece.size_bytes:
            header = window.batch_at(position)
            if header is None:
                position = window.next_after_damage(position, expected, found)
                expected = None
                continue
            if expected is not None and header.base_offset != expected:
                found(_gap(piece, expected, header.base_offset))
            if position >= piece.end:
                return
            expected = header.next_offset
            if expected > piece.first_offset:
                yield header, window.data, position - piece.start
            position += PREFIX_BYTES + header.length
        ended = position is not None and piece.end_offset != FOREVER
        if ended and expected is not None and expected != piece.end_offset:
            found(_gap(piece, expected, piece.end_offset))


def _first_expected(piece: Slice) -> int | None:
    """Return the offset that the slice must begin with, or None if only its content says so."""
    if piece.snapshot is not None or piece.start:
        return None
    named = SEGMENT_NAME.fullmatch(name_of(piece.path))
    return int(named[1]) if named else None


def _gap(piece: Slice, expected: int, following: int) -> Damage:
    return Damage(
        GAP,
        expected,
        following,
        f"{piece.path}: offset {following} follows where offset {expected} must, so records are "
        "missing: read the copy of another node, or restore this one from it",
    )


class _Window:
    """The bytes of a slice, and as many bytes after it as its last batch needs."""

    def __init__(self, file: IO[bytes], piece: Slice) -> None:
        self._file = file
        self._piece = piece
        file.seek(piece.start)
        self.data = file.read(piece.end - piece.start)
        self._view = memoryview(self.data)
        self._complete = False

    def batch_at(self, position: int) -> BatchHeader | None:
        """Return the header of the batch at `position`.

        Return None if no whole batch with a correct checksum begins there.
        """
        first = position - self._piece.start
        if first + HEADER_BYTES > len(self.data):
            self._reach(position + HEADER_BYTES)
            if first + HEADER_BYTES > len(self.data):
                return None
        # A log has many batches of few records, so that each call counts.
        header = BatchHeader._make(HEADER.unpack_from(self.data, first))
        records, length = header.record_count, header.length
        if header.magic != MAGIC or length < MIN_LENGTH or length > MAX_BATCH_BYTES - PREFIX_BYTES:
            return None
        if records < 1 or header.last_offset_delta != records - 1:
            return None
        end = first + PREFIX_BYTES + length
        if end > self._piece.size_bytes - self._piece.start:
            return None
        if end > len(self.data):
            self._reach(end + self._piece.start)
            if end > len(self.data):
                return None
        return header if crc32c(self._view[first + CRC_FROM : end]) == header.crc else None

    def next_batch(self, position: int, end: int) -> int | None:
        """Return the position of the first batch that begins in [position, end), or None."""
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

    def next_after_damage(self, position: int, expected: int | None, found: Found) -> int | None:
        """Return the position of the first good batch after damage, or None if the slice has none.

        Report the damage unless it is the torn end of the log. `expected` is the offset of the
        damaged batch, or None if it is not known."""
        piece = self._piece
        following, header = self._search(position + 1)
        if following is None and piece.may_be_torn:
            return None
        end_offset = None if piece.end_offset == FOREVER else piece.end_offset
        found(
            Damage(
                DAMAGED_BATCH,
                piece.first_offset if expected is None else expected,
                end_offset if header is None else header.base_offset,
                f"{piece.path}: the batch at byte {position} is damaged, and it is not the torn "
                "end of the log: read the copy of another node, or restore this one from it",
            )
        )
        return following if following is not None and following < piece.end else None

    def _search(self, position: int) -> tuple[int | None, BatchHeader | None]:
        """Return the position and the header of the next good batch of the file, or two Nones."""
        size = self._piece.size_bytes
        for start in range(position, size, SEARCH_BYTES):
            stop = min(start + SEARCH_BYTES, size)
            step = _Window(self._file, replace(self._piece, start=start, end=stop))
            found = step.next_batch(start, stop)
            if found is not None:
                return found, step.batch_at(found)
        return None, None

    def _reach(self, end: int) -> None:
        missing = min(end, self._piece.size_bytes) - self._piece.start - len(self.data)
        if missing > 0 and not self._complete:
            self._file.seek(self._piece.start + len(self.data))
            more = self._file.read(max(missing, READ_AHEAD_BYTES))
            self._complete = len(more) < missing
            self.data += more
            self._view = memoryview(self.data)
