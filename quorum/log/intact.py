"""Is what a log holds as it was written? Batch after batch: its CRC, its place, its leader epoch.

A start reads only what a crash may have torn, so damage to what was synced is met when it is read.
Readers must not be handed it, for a follower or a client could take it for the record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from quorate.quorum.log.batch import BatchHeader, batches
from quorate.quorum.log.errors import CorruptBatch, CorruptLog
from quorate.quorum.log.scan import scan
from quorate.quorum.log.segment import Segment

FRESH_BYTES = 4 * 1024 * 1024

EpochOf = Callable[[BatchHeader], int]


class Fresh:
    """What was appended a moment ago, from `offset` on: checked when it came in, and read from the
    page cache, so the usual reader, at the end of the log, costs no second look."""

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self._next = offset
        self._bytes = 0

    def appended(self, offset: int, size_bytes: int) -> None:
        self._bytes += size_bytes
        if self._bytes > FRESH_BYTES:
            self.offset, self._next, self._bytes = self._next, offset, 0


def check_read(segment: Segment, data: bytes, offset: int, epoch_of: EpochOf) -> None:
    """`data` was read from `offset` on, which may lie inside of its first batch."""
    position, expected = 0, offset
    try:
        for position, header in batches(data):
            first = position == 0 and header.base_offset <= offset < header.next_offset
            if not first and header.base_offset != expected:
                raise CorruptBatch(f"the batch says offset {header.base_offset}")
            if header.leader_epoch != epoch_of(header):
                raise CorruptBatch(f"leader epoch {header.leader_epoch} is not that offset's")
            position, expected = position + header.size_bytes, header.next_offset
    except CorruptBatch as error:
        start = segment.position_of(offset)
        raise CorruptLog(segment.path, start + position, expected, str(error)) from error


def check_all(segments: Iterable[Segment], epoch_of: EpochOf) -> None:
    """Reads all of these segments."""
    for segment in segments:
        offset, position = segment.base_offset, 0
        for position, header, intact in scan(segment):
            reason = ""
            if header is None or not intact or header.base_offset != offset:
                reason = f"no valid batch of offset {offset}"
            elif header.leader_epoch != epoch_of(header):
                reason = f"leader epoch {header.leader_epoch} is not the one of that offset"
            if header is None or reason:
                raise CorruptLog(segment.path, position, offset, reason)
            offset = header.next_offset
        if offset != segment.next_offset:
            reason = f"it ends here, the log goes on at offset {segment.next_offset}"
            raise CorruptLog(segment.path, segment.size, offset, reason)
