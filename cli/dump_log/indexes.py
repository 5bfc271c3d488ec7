"""The entries of indexes, and those that contradict the log."""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Iterator, Sequence

from quorate.cli.client.batches import whole_batches
from quorate.quorum.log.batches.batch import read_header
from quorate.quorum.log.files.errors import CorruptBatch

OFFSET_ENTRY = struct.Struct(">ii")
TIME_ENTRY = struct.Struct(">qi")
Entries = Sequence[tuple[int, int]]


def offset_index(content: bytes, base_offset: int) -> Iterator[tuple[int, int]]:
    """Yield (offset, position in bytes) of each entry. The preallocated zeros end the index."""
    for number, (delta, position) in enumerate(OFFSET_ENTRY.iter_unpack(whole(content, 8))):
        if number and delta == 0:
            return
        yield base_offset + delta, position


def time_index(content: bytes, base_offset: int) -> Iterator[tuple[int, int]]:
    """Yield (timestamp in ms, offset) of each entry. The preallocated zeros end the index."""
    for number, (timestamp, delta) in enumerate(TIME_ENTRY.iter_unpack(whole(content, 12))):
        if number and delta == 0:
            return
        yield timestamp, base_offset + delta


def whole(content: bytes, entry_bytes: int) -> bytes:
    """Return the bytes without an incomplete last entry."""
    return content[: len(content) // entry_bytes * entry_bytes]


def index_mismatches(entries: Entries, log: memoryview) -> Iterator[str]:
    """Yield a line for each entry of an offset index that is wrong, with the last offset of the
    batch at its position. It is None if there is no batch."""
    for offset, position in entries:
        try:
            found = read_header(log, position).last_offset
        except CorruptBatch:
            yield f"Index offset: {offset}, log offset: None"
            continue
        if found != offset:
            yield f"Index offset: {offset}, log offset: {found}"


def time_mismatches(entries: Entries, log: memoryview) -> Iterator[str]:
    """Yield a line for each entry of a time index that is wrong: its offset is not the last one of
    a batch, its timestamp is not the largest one of that batch, or it is not after the timestamp
    of the entry before."""
    headers = [header for _, header in whole_batches(log)]
    ends = [header.last_offset for header in headers]
    before = -1
    for timestamp, offset in entries:
        number = bisect_left(ends, offset)
        if number == len(ends) or ends[number] != offset:
            found = -1 if number == len(ends) else ends[number]
            yield f"Indexed offset: {offset}, found log offset: {found}"
        elif headers[number].max_timestamp_ms != timestamp:
            found = headers[number].max_timestamp_ms
            yield f"Index timestamp: {timestamp}, log timestamp: {found}"
        if timestamp <= before:
            yield f"Index timestamp: {timestamp}, Previously indexed timestamp: {before}"
        before = timestamp
