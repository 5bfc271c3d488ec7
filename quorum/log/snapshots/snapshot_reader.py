"""Reads a snapshot file from any position, and checks every batch that it touches."""

from __future__ import annotations

from bisect import bisect_right

from quorate.quorum.log.batches.batch import (
    HEADER_BYTES,
    BatchHeader,
    checksum_is_valid,
    read_header,
)
from quorate.quorum.log.files.errors import CorruptBatch
from quorate.quorum.seams import File


class SnapshotReader:
    """The reader of one snapshot file, for the leader that serves it in pieces.

    A piece may begin and end within a batch. All batches that it touches are checked entirely. The
    reader remembers the positions of the batches that it has passed. The thread that reads owns it.
    """

    def __init__(self, file: File, size_bytes: int, epoch: int) -> None:
        """Read `file`, which has `size_bytes`. All its batches have the leader epoch `epoch`."""
        self.file = file
        self._size = size_bytes
        self._epoch = epoch
        self._starts = [0]
        """Positions of batches, as far as the file was read."""
        self._offsets = [0]
        """Base offsets of the same batches."""

    def read(self, position: int, max_bytes: int) -> bytes:
        """Return the bytes from `position` on, at most `max_bytes`, fewer at the end of the file.
        Block.

        `position` must not lie beyond the end of the file. Raise CorruptBatch if a batch that the
        bytes touch is damaged. Raise it also for a damaged header between the bytes read before and
        `position`."""
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
