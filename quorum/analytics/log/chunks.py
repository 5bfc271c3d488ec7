"""The first pass over large segments in parts, so that many tasks share it.

A part begins at any byte, and its first batch is found by a checksum. A record could contain bytes
that look like a batch. Therefore the parts of a segment count only if each one begins where the one
before it ended. Otherwise the segment is passed over as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quorate.quorum.analytics.log.first_pass import Border, Pass, pass_over
from quorate.quorum.analytics.log.seek import first_batch_in
from quorate.quorum.analytics.log.segments import StoredFile

CHUNK_BYTES = 64 << 20
"""The size of a part."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """The bytes [start, end) of a segment."""

    segment: StoredFile
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class ChunkPass:
    """The result of the pass over the batches that begin in a part.

    `first` is the position of the first one, and `end` is the position after the last one. Both are
    -1 if no batch begins in the part."""

    path: str
    first: int
    end: int
    borders: tuple[Border, ...]
    markers: tuple[tuple[int, int], ...]


def chunks_of(segments: Sequence[StoredFile], chunk_bytes: int = CHUNK_BYTES) -> list[Chunk]:
    """Return the parts of the segments."""
    return [
        Chunk(segment, start, min(start + chunk_bytes, segment.size_bytes))
        for segment in segments
        for start in range(0, segment.size_bytes, chunk_bytes)
    ]


def pass_chunk(chunk: Chunk, range_bytes: int) -> ChunkPass:
    """Pass over the batches that begin in a part. Block."""
    segment = chunk.segment
    first = first_batch_in(segment, chunk.start, chunk.end) if chunk.start else 0
    if first is None:
        return ChunkPass(segment.path, -1, -1, (), ())
    passed = pass_over(segment.path, segment.size_bytes, range_bytes, start=first, until=chunk.end)
    return ChunkPass(segment.path, first, passed.end, tuple(passed.borders), tuple(passed.markers))


def combined(parts: Sequence[ChunkPass]) -> Pass | None:
    """Return the pass over a segment, from those over all its parts in order.

    Return None if they do not continue each other. The segment is then damaged, or a record looks
    like a batch."""
    whole = Pass(1)
    for part in parts:
        if part.first < 0:
            continue
        if part.first != whole.end:
            return None
        whole.borders += part.borders
        whole.markers += part.markers
        whole.end = part.end
    return whole
