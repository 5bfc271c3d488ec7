"""Batches in bytes that may end in the middle of one: a segment's torn tail, a limited fetch."""

from __future__ import annotations

from collections.abc import Iterator

from quorate.quorum.log.batch import BatchHeader, read_header
from quorate.quorum.log.errors import CorruptBatch


def whole_batches(content: memoryview) -> Iterator[tuple[int, BatchHeader]]:
    """Every whole batch, also one whose checksum fails; stops at what is no batch or cut off."""
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
