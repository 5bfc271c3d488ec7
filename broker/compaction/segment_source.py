"""Checked reads of a sealed segment's batches, as a file, in the thread of long work."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from quorate.quorum.log.batches.batch import (
    HEADER_BYTES,
    BatchHeader,
    checksum_is_valid,
    read_header,
)
from quorate.quorum.log.checking.integrity import EpochOf
from quorate.quorum.log.files.errors import CorruptBatch, CorruptLog
from quorate.quorum.seams import Disk


class SourceSegment(NamedTuple):
    """A sealed segment at the beginning of a cleaning. It is not changed while it is in its log."""

    path: str
    base_offset: int
    next_offset: int
    size: int


class SourceBatch(NamedTuple):
    """One batch of a segment: its header, its bytes, and its end in the file."""

    header: BatchHeader
    data: memoryview
    end: int


def read_batches(
    disk: Disk, source: SourceSegment, buffer_bytes: int, epoch_of: EpochOf
) -> Iterator[SourceBatch]:
    """Yield the batches of a segment. A read takes `buffer_bytes`, or one larger batch. Block.

    Raise CorruptLog if a batch fails its CRC, does not continue the segment, has another leader
    epoch than `epoch_of` returns, or reaches beyond the file. Raise OSError."""
    file = disk.open(source.path, writable=False)
    position, offset = 0, source.base_offset
    try:
        while position < source.size:
            size = min(max(buffer_bytes, HEADER_BYTES), source.size - position)
            data = file.pread(size, position)
            needed = read_header(data).size_bytes
            if needed > len(data) and position + needed <= source.size:
                data = file.pread(needed, position)
            view, at = memoryview(data), 0
            while len(data) - at >= HEADER_BYTES:
                header = read_header(data, at)
                if at + header.size_bytes > len(data):
                    break
                if not checksum_is_valid(view, at, header):
                    raise CorruptBatch(f"the batch at {header.base_offset} fails its CRC-32C")
                if header.base_offset < offset or header.last_offset >= source.next_offset:
                    raise CorruptBatch(f"the batch has base offset {header.base_offset}")
                if header.leader_epoch != epoch_of(header):
                    raise CorruptBatch(
                        f"the batch has leader epoch {header.leader_epoch}, the log epoch "
                        f"{epoch_of(header)}"
                    )
                offset = header.next_offset
                stop = at + header.size_bytes
                yield SourceBatch(header, view[at:stop], position + stop)
                at = stop
            if not at:
                raise CorruptBatch(f"the segment ends within this batch of {needed} bytes")
            position += at
    except CorruptBatch as error:
        raise CorruptLog(source.path, position, offset, str(error)) from error
    finally:
        file.close()
