"""The data file of one segment: whole batches, one after another from byte 0, without an index."""

from __future__ import annotations

from collections.abc import Iterator

from quorate.quorum.log.batches.batch import HEADER_BYTES, BatchHeader, read_header
from quorate.quorum.log.files.errors import CorruptBatch, CorruptLog
from quorate.quorum.log.files.names import LOG_SUFFIX, segment_file
from quorate.quorum.seams import Buffer, Disk, File

MAX_RELATIVE_OFFSET = 2**31 - 1
"""The largest offset of a segment, relative to its base offset. Indexes store it in 32 bits."""
WALK_BYTES = 4096
"""Bytes of one read while `walk` goes from header to header."""


class BatchFile:
    """A file of batches on a Disk, which opens the file when it is first used.

    Invariants: batches lie one after another from byte 0 to `size`; their offsets rise from
    `base_offset` to `next_offset`. The log's thread owns it; only `sync` runs in other threads.
    """

    def __init__(self, disk: Disk, directory: str, base_offset: int, suffix: str = "") -> None:
        """`suffix` follows the names of all files, for a segment that is not in place yet."""
        self.base_offset = base_offset
        self.next_offset = base_offset
        """The offset that follows the last batch."""
        self.path = segment_file(directory, base_offset, LOG_SUFFIX) + suffix
        self.dirty = False
        """True if the file has bytes that no flush has taken yet."""
        self._disk = disk
        self._directory = directory
        self._file: File | None = None
        self._size: int | None = None
        self._removed = False
        self._preallocated_bytes = 0
        self.trimmed = False
        """True if preallocated bytes were cut off. The flush that follows must sync the file."""

    @property
    def removed(self) -> bool:
        """True once the segment has left its log. Its files may be missing then."""
        return self._removed

    @property
    def file(self) -> File:
        """The open file. Raise FileNotFoundError if nothing was written yet."""
        if self._file is None:
            self._file = self._disk.open(self.path)
        return self._file

    @property
    def size(self) -> int:
        """Bytes of all batches."""
        if self._size is None:
            self._size = self.file.size()
        return self._size

    def create_file(self) -> File:
        """Create and open the file, with the preallocated bytes."""
        self._file = self._disk.open(self.path, create=True)
        if self._preallocated_bytes > self.size:
            self._file.truncate(self._preallocated_bytes)
        return self._file

    def trim(self) -> None:
        """Cut the rest of the preallocated bytes off, if there are any."""
        if self._preallocated_bytes and (self._file or self._disk.exists(self.path)):
            self.truncate_file(self.size)
            self.trimmed = True

    def write_at_end(self, data: Buffer) -> int:
        """Append bytes and return their position. After an OSError the file is as before."""
        file = self._file or self.create_file()
        start = self.size
        try:
            file.pwrite(data, start)
        except OSError:
            file.truncate(start)  # no part of this write may precede the next append
            self._preallocated_bytes = 0
            raise
        self._size = start + len(data)
        return start

    def truncate_file(self, position: int) -> None:
        """Cut the file at `position`, the start of a batch. Indexes are not changed."""
        assert 0 <= position <= self.size
        self.file.truncate(position)
        self._size = position
        self._preallocated_bytes = 0

    def close_file(self) -> None:
        """Close the file. The next use opens it again."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def moved_to(self, directory: str) -> None:
        """Note that the file lies in `directory` now. The next use opens it there."""
        self.close_file()
        self._directory = directory
        self.path = f"{directory}/{self.path.rpartition('/')[2]}"

    def sync(self) -> None:
        """Make the bytes durable. Block; may run in any thread.

        If the segment was removed meanwhile, a missing file is no error."""
        try:
            self.file.sync()
        except FileNotFoundError:
            if not self._removed:
                raise

    def mark_removed(self) -> None:
        """Note that the segment has left its log. Nothing of it needs to become durable."""
        self._removed = True

    def walk(self, position: int) -> Iterator[tuple[int, BatchHeader]]:
        """Yield (position, header) of each batch from `position` on, the start of a batch.

        Raise CorruptLog if a header is missing, if its batch does not fit into the file, or if the
        segment cannot hold its offsets. CRCs are not checked."""
        file, size = self.file, self.size
        chunk, chunk_from, end = b"", position, self.next_offset
        while position < size:
            if position + HEADER_BYTES > chunk_from + len(chunk):
                chunk, chunk_from = file.pread(WALK_BYTES, position), position
            header = self._header(chunk, position - chunk_from, position)
            if not self.may_hold(header):  # The CRC does not cover the base offset.
                reason = f"the batch has base offset {header.base_offset}"
                raise CorruptLog(self.path, position, end, reason)
            yield position, header
            position, end = position + header.size_bytes, header.next_offset

    def header_at(self, position: int) -> BatchHeader:
        """Return the header of the batch that starts at `position`. Raise CorruptLog."""
        return self._header(self.file.pread(HEADER_BYTES, position), 0, position)

    def _header(self, chunk: bytes, at: int, position: int) -> BatchHeader:
        try:
            header = read_header(chunk, at)
        except CorruptBatch as error:
            raise CorruptLog(self.path, position, self.next_offset, str(error)) from error
        if position + header.size_bytes > self.size:
            raise CorruptLog(
                self.path,
                position,
                header.base_offset,
                f"the file ends within this batch of {header.size_bytes} bytes",
            )
        return header

    def may_hold(self, header: BatchHeader) -> bool:
        """Return True if the offsets of a batch are ones that a segment can hold."""
        first, last = header.base_offset, header.last_offset
        return self.base_offset <= first and last <= self.base_offset + MAX_RELATIVE_OFFSET
