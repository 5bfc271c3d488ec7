"""Reads a segment that may be damaged, and distinguishes a torn write from damage.

A batch is torn if its bytes in some sector are all zero, because that sector was never written. It
is also torn if the file ends within it, with one exception: the rest of the file has a right CRC,
or it holds a later valid batch. Then only the length in its header is damaged. Damage that keeps
every sector filled is not torn.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from quorate.quorum.log.batches.batch import (
    HEADER_BYTES,
    PREFIX_BYTES,
    BatchHeader,
    checksum_is_valid,
    read_header,
)
from quorate.quorum.log.files.errors import CorruptBatch
from quorate.quorum.seams import File

SCAN_BYTES = 1024 * 1024
SECTOR_BYTES = 512
"""The unit that a disk writes completely or not at all."""


class StoredSegment(Protocol):
    """The data file of a segment with its size; `Segment` and `SegmentFile` satisfy it."""

    @property
    def file(self) -> File:
        """The open data file."""

    @property
    def size(self) -> int:
        """Bytes of the file."""


def scan(segment: StoredSegment) -> Iterator[tuple[int, BatchHeader | None, bool]]:
    """Yield (position, header, valid) of each batch from byte 0 on. Block.

    A batch is valid if it is complete and its CRC is right. Offsets and epochs are not checked. The
    scan ends after the first batch that is not valid. Its header is None if the bytes there cannot
    be a header."""
    size = segment.size
    position, chunk, chunk_from = 0, b"", 0
    while position < size:
        at = position - chunk_from
        if at + HEADER_BYTES > len(chunk):
            chunk, chunk_from, at = segment.file.pread(SCAN_BYTES, position), position, 0
        try:
            header = read_header(chunk, at)
        except CorruptBatch:
            yield position, None, False
            return
        if position + header.size_bytes > size:
            yield position, header, False
            return
        if at + header.size_bytes > len(chunk):
            chunk = segment.file.pread(max(SCAN_BYTES, header.size_bytes), position)
            chunk_from, at = position, 0
        intact = checksum_is_valid(chunk, at, header)
        yield position, header, intact
        if not intact:
            return
        position += header.size_bytes


def is_torn(segment: StoredSegment, start: int, offset: int) -> bool:
    """Return True if the invalid batch at byte `start`, expected at `offset`, may be an interrupted
    write. Block."""
    file, size = segment.file, segment.size
    head = file.pread(HEADER_BYTES, start)
    if len(head) < HEADER_BYTES:
        return True
    try:
        header = read_header(head)
    except CorruptBatch:
        return _has_empty_sector(head, start)
    if start + header.size_bytes <= size:
        return _has_empty_sector(file.pread(header.size_bytes, start), start)
    # The file ends within the batch, or the length in the header is damaged.
    tail = file.pread(size - start, start)
    if _has_empty_sector(tail, start):
        return True
    whole = header._replace(length=len(tail) - PREFIX_BYTES)
    return not checksum_is_valid(tail, 0, whole) and not _a_batch_follows(tail, offset)


def _has_empty_sector(data: bytes, position: int) -> bool:
    """Return True if the part of `data` in some sector of the file is all zero."""
    start = 0
    while start < len(data):
        end = start + SECTOR_BYTES - (position + start) % SECTOR_BYTES
        if not any(data[start:end]):
            return True
        start = end
    return False


def _a_batch_follows(data: bytes, offset: int) -> bool:
    """Return True if a valid batch of a later offset begins anywhere after the first byte."""
    for start in range(1, len(data) - HEADER_BYTES + 1):
        if data[start : start + 3] != b"\0\0\0":  # no offset is that large
            continue
        try:
            header = read_header(data, start)
        except CorruptBatch:
            continue
        if header.base_offset <= offset or start + header.size_bytes > len(data):
            continue
        if checksum_is_valid(data, start, header):
            return True
    return False
