"""Checks that stored batches are those that were appended: their CRC, offset and leader epoch.

A start reads only the bytes that a crash may have torn. Damage to older bytes is therefore found
when they are read. Readers must not receive damaged batches, because a follower or a client would
take them for records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from quorate.quorum.log.batches.batch import (
    BatchHeader,
    batches,
)
from quorate.quorum.log.files.errors import CorruptBatch, CorruptLog
from quorate.quorum.log.segments.scan import scan
from quorate.quorum.log.segments.segment import Segment

RECENT_BYTES = 4 * 1024 * 1024
"""At least so many bytes and at most about twice as many, those appended last, are read without a
check. There are fewer after a start."""

EpochOf = Callable[[BatchHeader], int]
"""Returns the leader epoch that the log's epoch cache has for a batch."""


class RecentlyAppended:
    """The offset from which batches were appended recently and need no check.

    The append checked them, and reads come from the page cache. The usual reader, at the end of the
    log, therefore costs no second check. `offset` is that offset. After a truncation it may lie
    above the log end: the batches that are appended below it are checked when they are read.
    """

    def __init__(self, offset: int) -> None:
        """Begin at the log end: everything that was appended before is checked when it is read."""
        self.offset = offset
        self._next = offset
        self._bytes = 0

    def appended(self, offset: int, size_bytes: int) -> None:
        """Note an append of `size_bytes` at `offset`."""
        self._bytes += size_bytes
        if self._bytes > RECENT_BYTES:
            self.offset, self._next, self._bytes = self._next, offset, 0


def check_read(
    segment: Segment, data: bytes, offset: int, epoch_of: EpochOf, *, gaps: bool = False
) -> None:
    """Check the batches in `data`, which was read from the batch that holds `offset`.

    Raise CorruptLog if a batch fails its CRC or has another base offset or leader epoch than the
    log. The first batch may begin before `offset`. With `gaps`, offsets may be missing before each
    batch, but no batch reaches beyond the next segment."""
    position, expected = 0, offset
    try:
        for position, header in batches(data):
            first = position == 0 and header.base_offset <= offset < header.next_offset
            missing = gaps and header.base_offset > expected
            missing = missing and header.next_offset <= segment.next_offset
            if not (first or missing) and header.base_offset != expected:
                raise CorruptBatch(f"the batch has base offset {header.base_offset}")
            if header.leader_epoch != epoch_of(header):
                raise CorruptBatch(
                    f"the batch has leader epoch {header.leader_epoch}, the log epoch "
                    f"{epoch_of(header)}"
                )
            position, expected = position + header.size_bytes, header.next_offset
    except CorruptBatch as error:
        start = segment.position_of(offset)
        raise CorruptLog(segment.path, start + position, expected, str(error)) from error


def check_all(segments: Iterable[Segment], epoch_of: EpochOf, *, gaps: bool = False) -> None:
    """Read and check all batches of these segments. Block.

    Raise CorruptLog at the first damage, or if a segment ends before its last offset. The error has
    the offset behind the batch before, because a base offset may be damaged. With `gaps`, offsets
    may be missing before each batch, but no batch of a segment reaches beyond the next segment. If
    a batch has a lower base offset than the one before it allows, either of the two is damaged. The
    error has the offset behind the batch before both of them then, which lies in this segment."""
    for segment in segments:
        offset, position = segment.base_offset, 0
        before = offset
        for position, header, intact in scan(segment):
            reason = ""
            if gaps and header is not None and intact and header.base_offset < offset:
                reason = f"the batch has base offset {header.base_offset}, which is too low here"
                offset = before
            elif header is None or not intact or not _continues(header, offset, gaps):
                reason = f"no valid batch with base offset {offset}"
            elif gaps and header.next_offset > segment.next_offset:
                reason = (
                    f"the batch has base offset {header.base_offset}, but the segment ends at "
                    f"{segment.next_offset}"
                )
            elif header.leader_epoch != epoch_of(header):
                reason = (
                    f"the batch has leader epoch {header.leader_epoch}, the log epoch "
                    f"{epoch_of(header)}"
                )
            if header is None or reason:
                raise CorruptLog(segment.path, position, offset, reason)
            before, offset = offset, header.next_offset
        if offset != segment.next_offset:
            reason = (
                f"the segment ends here, but the next one begins at offset {segment.next_offset}"
            )
            raise CorruptLog(segment.path, segment.size, offset, reason)


def _continues(header: BatchHeader, offset: int, gaps: bool) -> bool:
    return header.base_offset == offset or (gaps and header.base_offset > offset)
