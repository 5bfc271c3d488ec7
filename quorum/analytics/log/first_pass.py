"""The first pass over a log on the driver. It finds what a task cannot see in its own slice.

The pass reads the headers of batches, which takes a few hundred nanoseconds each. It finds:

- the batch boundaries at which slices can begin;
- the metadata transactions that were aborted or never ended (KIP-868).

No header says that a batch holds a transaction marker. The pass therefore searches for the bytes
that a marker begins with, and decodes only the batches that contain them and compressed batches.

Invalid bytes end the pass over their segment. The pass does not compute CRCs, so it may also pass
over damage. The task that reads the bytes checks them, and decides between a torn end and damage.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from quorate.quorum.analytics.log.files import opened
from quorate.quorum.log.batches.batch import (
    CODEC_MASK,
    CONTROL,
    HEADER_BYTES,
    MAGIC,
    MIN_LENGTH,
    PREFIX_BYTES,
    read_header,
    records_of,
)
from quorate.quorum.log.files.errors import CorruptBatch
from quorate.quorum.metadata.framing import FRAME_VERSION
from quorate.quorum.metadata.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
)

BEGIN, END, ABORT = (
    record.API_KEY
    for record in (BeginTransactionRecord, EndTransactionRecord, AbortTransactionRecord)
)
MARKER = re.compile(bytes((FRAME_VERSION,)) + b"[" + bytes((BEGIN, END, ABORT)) + b"][\0-\x0f]")
"""The first bytes of a transaction marker: frame version, type, version."""
MAGIC_AT, ATTRIBUTES_LOW_AT = 16, 22
FOREVER = 2**63 - 1
"""The end offset of a range that has no end."""
WINDOW_BYTES = 8 << 20
"""The number of bytes that the pass reads from a segment in one call."""
_PREFIX = struct.Struct(">qi23xq")
"""The base offset, the length and the maximum timestamp of a batch."""


@dataclass(slots=True)
class Border:
    """The beginning of a range of a segment, at the first byte of a batch.

    `newest_ms` is the maximum timestamp of the range."""

    position: int
    base_offset: int
    newest_ms: int = FOREVER


@dataclass(frozen=True, slots=True)
class Undone:
    """The offsets of a metadata transaction without effect: its records and its markers.

    Control records that Raft wrote in between keep their effect. `end_offset` is exclusive. It is
    FOREVER if the log ends inside the transaction."""

    begin_offset: int
    end_offset: int


class Pass:
    """The result of the pass over one segment.

    `borders` are about `range_bytes` apart. `markers` are pairs of offset and record type."""

    def __init__(self, range_bytes: int, start: int = 0) -> None:
        self.borders: list[Border] = []
        """About `range_bytes` apart."""
        self.markers: list[tuple[int, int]] = []
        """Offset and type."""
        self.end = start
        """The position after the last whole batch."""
        self._range_bytes = range_bytes
        self._border = start

    def over(self, data: bytes, base: int, stop: int = FOREVER) -> int:
        """Process `data`, which lies at position `base` of the segment and begins with a batch.

        Batches that begin at `stop` or later are left out. Return the number of bytes in the other
        whole batches, or -1 if invalid bytes end the pass.
        """
        size = len(data)
        searched = (found.start() for found in MARKER.finditer(data))
        candidate = next(searched, size)
        position = 0
        last = self.borders[-1] if self.borders else Border(-1, -1)
        while position + HEADER_BYTES <= size and base + position < stop:
            base_offset, length, newest_ms = _PREFIX.unpack_from(data, position)
            if length < MIN_LENGTH or data[position + MAGIC_AT] != MAGIC:
                return -1
            end = position + PREFIX_BYTES + length
            if end > size:
                break
            if base + position >= self._border:
                last = Border(base + position, base_offset, newest_ms)
                self.borders.append(last)
                self._border += self._range_bytes
            elif newest_ms > last.newest_ms:
                last.newest_ms = newest_ms
            if candidate < end or data[position + ATTRIBUTES_LOW_AT] & CODEC_MASK:
                try:
                    self.markers += _markers(data[position:end])
                except CorruptBatch:
                    return -1
                while candidate < end:
                    candidate = next(searched, size)
            position = end
        return position


def pass_over(
    path: str, end: int, range_bytes: int, *, start: int = 0, until: int | None = None
) -> Pass:
    """Pass over the batches that begin in [start, until) of a segment, and end at `end` at most.

    A batch must begin at `start`. Without `until`, pass over all batches up to `end`. The borders
    divide the bytes into ranges of about the same size. A range has at most `range_bytes` and the
    rest of the batch in which they end."""
    stop = end if until is None else until
    count = max(1, -(-(stop - start) // range_bytes))
    passed = Pass(-(-(stop - start) // count), start)
    rest = b""
    with opened(path) as file:
        file.seek(start)
        while passed.end < stop and (
            more := file.read(min(WINDOW_BYTES, end - passed.end - len(rest)))
        ):
            data = rest + more
            used = passed.over(data, passed.end, stop)
            if used < 0:
                break
            passed.end, rest = passed.end + used, data[used:]
    return passed


def _markers(batch: bytes) -> Iterator[tuple[int, int]]:
    header = read_header(batch)
    if header.attributes & CONTROL:
        return
    for record in records_of(batch, 0, header):
        if record.value is not None and MARKER.match(record.value):
            yield record.offset, record.value[1]


def undone(markers: Iterable[tuple[int, int]]) -> list[Undone]:
    """Return the transactions that no END marker follows, from all markers of a log in order."""
    ordered = list(markers)
    return [
        Undone(offset, FOREVER if following is None else following[0] + (following[1] == ABORT))
        for (offset, kind), following in zip_longest(ordered, ordered[1:])
        if kind == BEGIN and (following is None or following[1] != END)
    ]


def overlapping(ranges: Sequence[Undone], first_offset: int, end_offset: int) -> tuple[Undone, ...]:
    """Return the transactions that overlap the offsets [first_offset, end_offset)."""
    return tuple(
        each for each in ranges if each.begin_offset < end_offset and first_offset < each.end_offset
    )
