"""The slices of a range of offsets, for readers that follow a log while it grows.

A range that is read must not begin or end inside a metadata transaction, because the end of the
transaction decides on all its records (KIP-868). `stable_end` finds such ends. Each call reads only
the bytes of its range.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from quorate.quorum.analytics.log.first_pass import (
    BEGIN,
    FOREVER,
    Border,
    Pass,
    overlapping,
    pass_over,
    undone,
)
from quorate.quorum.analytics.log.seek import Before, batches_from, last_before
from quorate.quorum.analytics.log.segments import (
    SEGMENT_NAME,
    SLICE_BYTES,
    Slice,
    StoredFile,
    files_named,
)


def slices_between(
    directory: str, first_offset: int, end_offset: int, slice_bytes: int = SLICE_BYTES
) -> list[Slice]:
    """Return the slices with the records at [first_offset, end_offset). Block.

    Both offsets must be outside of transactions."""
    passes = list(_passes(directory, first_offset, end_offset, slice_bytes))
    without_effect = undone(marker for _, _, _, passed in passes for marker in passed.markers)
    slices = []
    for segment, is_last, stop, passed in passes:
        borders = [*passed.borders, Border(stop, FOREVER)]
        for border, following in pairwise(borders):
            slices.append(
                Slice(
                    segment.path,
                    border.position,
                    following.position,
                    segment.size_bytes,
                    may_be_torn=is_last,
                    first_offset=max(border.base_offset, first_offset),
                    undone=overlapping(without_effect, border.base_offset, following.base_offset),
                    before=end_offset,
                )
            )
    return slices


def stable_end(directory: str, first_offset: int, end_offset: int, max_records: int) -> int:
    """Return the end of the next range from `first_offset` on, at most `end_offset`. Block.

    The range has about `max_records`, or more if one transaction has more. If the log ends inside
    a transaction, the range ends before it."""
    wanted = min(end_offset, first_offset + max_records)
    begin = _open_at_end(directory, first_offset, wanted)
    if begin is None:
        return wanted
    if begin > first_offset or wanted == end_offset:
        return begin
    for offset, kind in _markers(directory, first_offset, end_offset):
        if kind != BEGIN:
            return offset + 1
    return first_offset


def _open_at_end(directory: str, first_offset: int, end_offset: int) -> int | None:
    """Return the offset at which a transaction begins that is open at `end_offset`, or None."""
    begin = None
    for offset, kind in _markers(directory, first_offset, end_offset):
        begin = offset if kind == BEGIN else None
    return begin


def _markers(directory: str, first_offset: int, end_offset: int) -> Iterator[tuple[int, int]]:
    for _, _, _, passed in _passes(directory, first_offset, end_offset, SLICE_BYTES):
        for offset, kind in passed.markers:
            if first_offset <= offset < end_offset:
                yield offset, kind


def _passes(
    directory: str, first_offset: int, end_offset: int, slice_bytes: int
) -> Iterator[tuple[StoredFile, bool, int, Pass]]:
    """Yield (segment, is the last one, end of the range in it, its pass) for the range."""
    segments = files_named(directory, SEGMENT_NAME)
    for segment, following in zip(segments, [*segments[1:], None], strict=True):
        if segment.offset >= end_offset or segment.size_bytes == 0:
            continue
        if following is not None and following.offset <= first_offset:
            continue
        start = last_before(segment, begins_at_most(first_offset))
        stop = segment.size_bytes
        if following is None or following.offset > end_offset:
            position = last_before(segment, begins_at_most(end_offset - 1))
            stop = next((at + each.size_bytes for at, each in batches_from(segment, position)), 0)
        if stop > start:
            passed = pass_over(segment.path, stop, slice_bytes, start=start)
            yield segment, following is None, stop, passed


def begins_at_most(offset: int) -> Before:
    """Return a condition for bisection: the batch begins at this offset or before it."""
    return lambda header: header.base_offset <= offset
