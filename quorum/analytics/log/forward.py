"""The slices of a history in the order of the log, planned while they are read.

A reader that stops early reads no more of the log than it needs. It can begin at a snapshot in the
middle of the log, because no snapshot ends inside a metadata transaction. `segments.py` plans all
slices in advance, for readers that work at the same time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from quorate.quorum.analytics.log.files import opened
from quorate.quorum.analytics.log.seek import last_before
from quorate.quorum.analytics.log.segments import (
    SEGMENT_NAME,
    SLICE_BYTES,
    Slice,
    base_snapshot,
    files_named,
)
from quorate.quorum.log.batches.batch import MIN_LENGTH, PREFIX_BYTES

LENGTH_AT, LENGTH_BYTES = 8, 4


def forward(directory: Path | str, start: Slice | None = None) -> Iterator[Slice]:
    """Yield the slices of the snapshot `start` and of the log after it.

    Without `start`, begin with the base snapshot, or with the log if it has none."""
    begin = base_snapshot(directory) if start is None else start
    if begin is not None:
        yield from pieces(begin)
    from_offset = begin.snapshot.end_offset if begin is not None and begin.snapshot else 0
    yield from log_from(directory, from_offset)


def log_from(directory: Path | str, from_offset: int) -> Iterator[Slice]:
    """Yield the slices of the log that hold records at `from_offset` or after it."""
    segments = files_named(directory, SEGMENT_NAME)
    for segment, following in zip(segments, [*segments[1:], None], strict=True):
        if following is not None and following.offset <= from_offset:
            continue
        position = 0
        if segment.offset < from_offset:
            position = last_before(segment, lambda header: header.base_offset <= from_offset)
        size = segment.size_bytes
        whole = Slice(segment.path, position, size, size, may_be_torn=following is None)
        yield from pieces(replace(whole, first_offset=max(from_offset, segment.offset)))


def pieces(whole: Slice) -> Iterator[Slice]:
    """Cut a slice that begins with a batch at the ends of batches, about SLICE_BYTES apart."""
    position = whole.start
    with opened(whole.path) as file:
        while position < whole.end:
            file.seek(position)
            end = min(position + _whole_batches(file.read(SLICE_BYTES)), whole.end)
            yield replace(whole, start=position, end=end)
            position = end


def _whole_batches(data: bytes) -> int:
    """Return the number of bytes of the whole batches at the beginning of `data`.

    If the first batch is longer than `data`, return its length. If the lengths are invalid from
    some place on, end behind it, so that the reader of the slice meets the damage."""
    position, size = 0, len(data)
    while position + PREFIX_BYTES <= size:
        at = position + LENGTH_AT
        length = int.from_bytes(data[at : at + LENGTH_BYTES], "big", signed=True)
        end = position + PREFIX_BYTES + length
        if length < MIN_LENGTH:
            return size
        if end > size:
            return position or end
        position = end
    return position or size
