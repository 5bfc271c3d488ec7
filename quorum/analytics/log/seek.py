"""The position of a batch in a log, found by bisection.

Offsets and leader epochs never decrease in a log, so a few probes find a batch without a read of
the bytes before it. A probe begins at any byte. It finds the next whole batch with a correct CRC,
as `read_batches` does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from quorate.quorum.analytics.log.damage import Damage
from quorate.quorum.analytics.log.reading import read_batches
from quorate.quorum.analytics.log.segments import SEGMENT_NAME, Slice, StoredFile, files_named
from quorate.quorum.log.batches.batch import BatchHeader

PROBE_BYTES = 1 << 16
"""The number of bytes in which a probe searches for a batch before it takes the next ones."""

Before = Callable[[BatchHeader], bool]
"""Returns True for all batches up to some place in the log, and False for all later ones."""


def last_before(segment: StoredFile, before: Before) -> int:
    """Return the position of the last batch of the segment for which `before` returns True.

    The first batch counts as one of them, so the result is 0 if there is no other."""
    low, high = 0, segment.size_bytes
    while high - low > PROBE_BYTES:
        middle = (low + high) // 2
        found = _next_batch(segment, middle, high)
        if found is not None and before(found[1]):
            low = found[0]
        else:
            high = middle
    for position, header in batches_from(segment, low):
        if not before(header):
            break
        low = position
    return low


def batches_from(segment: StoredFile, position: int) -> Iterator[tuple[int, BatchHeader]]:
    """Yield (position, header) of the sound batches from `position` on, where a batch begins.

    The batches end without an error at the end of the segment and at damage."""
    while (found := _next_batch(segment, position, position + 1)) is not None:
        yield found
        position += found[1].size_bytes


def first_batch_in(segment: StoredFile, start: int, end: int) -> int | None:
    """Return the position of the first batch that begins in [start, end), or None."""
    found = _next_batch(segment, start, end)
    return None if found is None else found[0]


def _next_batch(segment: StoredFile, start: int, end: int) -> tuple[int, BatchHeader] | None:
    """Return (position, header) of the first batch that begins in [start, end)."""
    path, _, size = segment
    while start < min(end, size):
        stop = min(start + PROBE_BYTES, end, size)
        piece = Slice(path, start, stop, size, may_be_torn=True)
        for header, _, position in read_batches(piece, passed_over):
            return start + position, header
        start = stop
    return None


def passed_over(_: Damage) -> None:
    """Ignore damage. The readers of the slices report it."""


def last_batch(directory: Path | str) -> BatchHeader | None:
    """Return the header of the last whole batch of the log, or None if the log is empty.

    Damage before it is passed over."""
    for segment in reversed(files_named(directory, SEGMENT_NAME)):
        last: BatchHeader | None = None
        position: int | None = last_before(segment, lambda _: True)
        while position is not None and position < segment.size_bytes:
            for at, header in batches_from(segment, position):
                last, position = header, at + header.size_bytes
            position = first_batch_in(segment, position + 1, segment.size_bytes)
        if last is not None:
            return last
    return None


def rank_of(directory: Path | str) -> tuple[int, int]:
    """Return the epoch and the last offset of a log, or (-1, -1) if it is empty.

    Such pairs compare as Raft compares logs: first by the epoch, whatever the length (Raft, section
    5.4.1)."""
    last = last_batch(directory)
    return (-1, -1) if last is None else (last.leader_epoch, last.last_offset)


def epoch_at(directory: Path | str, offset: int) -> int | None:
    """Return the leader epoch of the record at `offset`, or None if the log does not hold it."""
    batch = batch_at(directory, offset)
    return None if batch is None else batch.leader_epoch


def batch_at(directory: Path | str, offset: int) -> BatchHeader | None:
    """Return the header of the batch with the record at `offset`, or None if the log does not hold
    it."""
    for segment in reversed(files_named(directory, SEGMENT_NAME)):
        if segment.offset <= offset:
            position = last_before(segment, lambda header: header.base_offset <= offset)
            found = next(batches_from(segment, position), None)
            if found is None or not found[1].base_offset <= offset <= found[1].last_offset:
                return None
            return found[1]
    return None
