"""Is what a log, or a snapshot, holds as it was written? Batch after batch: its CRC, its place, its
leader epoch.

A start reads only what a crash may have torn, and the latest snapshot, so damage to what was synced
is met when it is read. Readers must not be handed it, for a follower or a client could take it for
the record.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable

from quorate.quorum.log.batch import (
    HEADER_BYTES,
    BatchHeader,
    batches,
    checksum_is_valid,
    read_header,
)
from quorate.quorum.log.errors import CorruptBatch, CorruptLog
from quorate.quorum.log.scan import scan
from quorate.quorum.log.segment import Segment
from quorate.quorum.seams import File

RECENT_BYTES = 4 * 1024 * 1024

EpochOf = Callable[[BatchHeader], int]


class RecentlyAppended:
    """What was appended a moment ago, from `offset` on: checked when it came in, and read from the
    page cache, so the usual reader, at the end of the log, costs no second look."""

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self._next = offset
        self._bytes = 0

    def appended(self, offset: int, size_bytes: int) -> None:
        self._bytes += size_bytes
        if self._bytes > RECENT_BYTES:
            self.offset, self._next, self._bytes = self._next, offset, 0


def check_read(segment: Segment, data: bytes, offset: int, epoch_of: EpochOf) -> None:
    """`data` was read from `offset` on, which may lie inside of its first batch."""
    position, expected = 0, offset
    try:
        for position, header in batches(data):
            first = position == 0 and header.base_offset <= offset < header.next_offset
            if not first and header.base_offset != expected:
                raise CorruptBatch(f"the batch says offset {header.base_offset}")
            if header.leader_epoch != epoch_of(header):
                raise CorruptBatch(f"leader epoch {header.leader_epoch} is not that offset's")
            position, expected = position + header.size_bytes, header.next_offset
    except CorruptBatch as error:
        start = segment.position_of(offset)
        raise CorruptLog(segment.path, start + position, expected, str(error)) from error


def check_all(segments: Iterable[Segment], epoch_of: EpochOf) -> None:
    """Reads all of these segments."""
    for segment in segments:
        offset, position = segment.base_offset, 0
        for position, header, intact in scan(segment):
            reason = ""
            if header is None or not intact or header.base_offset != offset:
                reason = f"no valid batch of offset {offset}"
            elif header.leader_epoch != epoch_of(header):
                reason = f"leader epoch {header.leader_epoch} is not the one of that offset"
            if header is None or reason:
                raise CorruptLog(segment.path, position, offset, reason)
            offset = header.next_offset
        if offset != segment.next_offset:
            reason = f"it ends here, the log goes on at offset {segment.next_offset}"
            raise CorruptLog(segment.path, segment.size, offset, reason)


class SnapshotReader:
    """A snapshot's bytes from anywhere, so many as are asked for. A piece may begin and end within
    a batch; what is checked are all batches that it touches, whole."""

    def __init__(self, file: File, size_bytes: int, epoch: int) -> None:
        self.file = file
        self._size = size_bytes
        self._epoch = epoch
        self._starts = [0]
        """Where batches begin, as far as this was read, and at which offset each does."""
        self._offsets = [0]

    def read(self, position: int, max_bytes: int) -> bytes:
        """Raises CorruptBatch."""
        end = min(position + max_bytes, self._size)
        while self._starts[-1] < position:
            self._header(len(self._starts) - 1)
        number = bisect_right(self._starts, position) - 1
        start = self._starts[number]
        data = b""
        while start + len(data) < end:
            header = self._header(number)
            batch = self.file.pread(header.size_bytes, self._starts[number])
            if not checksum_is_valid(batch, 0, header):
                raise CorruptBatch(f"the batch at byte {self._starts[number]} fails its CRC-32C")
            data += batch
            number += 1
        return data[position - start : end - start]

    def _header(self, number: int) -> BatchHeader:
        position, offset = self._starts[number], self._offsets[number]
        header = read_header(self.file.pread(HEADER_BYTES, position))
        end = position + header.size_bytes
        if (header.base_offset, header.leader_epoch) != (offset, self._epoch) or end > self._size:
            raise CorruptBatch(
                f"no batch of offset {offset} and epoch {self._epoch} at byte {position}"
            )
        if number + 1 == len(self._starts):
            self._starts.append(end)
            self._offsets.append(header.next_offset)
        return header
