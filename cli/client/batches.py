"""Record batches in bytes that may end within a batch: a torn tail, or a limited fetch."""

from __future__ import annotations

from collections.abc import Iterator

from quorate.quorum.log.batches.batch import BatchHeader, read_header
from quorate.quorum.log.files.errors import CorruptBatch


def whole_batches(content: memoryview) -> Iterator[tuple[int, BatchHeader]]:
    """Yield (position in bytes, header) of each complete batch, in order.

    Batches with a wrong checksum are included. The iteration stops at the first bytes that are no
    batch header, or at a batch that is cut off."""
    position = 0
    while position < len(content):
        try:
            header = read_header(content, position)
        except CorruptBatch:
            return
        if position + header.size_bytes > len(content):
            return
        yield position, header
        position += header.size_bytes
