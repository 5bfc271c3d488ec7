"""A segment's data file with its offset index: finds the position of an offset, and reads batches.

An index entry is only a hint. A search compares the entry that it uses with the batch at its
position. If the two differ, it rebuilds the indexes from the batches (R51, tests/scenarios). A
search may therefore block for a walk over the whole file.
"""

from __future__ import annotations

from quorate.quorum.log.batches.batch import HEADER_BYTES
from quorate.quorum.log.batches.batch_file import BatchFile
from quorate.quorum.log.files.errors import CorruptLog
from quorate.quorum.log.segments.index import SegmentIndexes
from quorate.quorum.seams import Disk

MAX_RECENT_POSITIONS = 64
"""Maximum number of batches whose positions a file remembers. The next read often begins at one of
them."""


class IndexedBatchFile(BatchFile):
    """A `BatchFile` that is searched by offset. See `BatchFile` for invariants and threads.

    `index_interval_bytes` is the distance between two index entries. A search costs a binary search
    in the index and a walk over about one such interval. Every method may raise OSError.
    """

    def __init__(
        self,
        disk: Disk,
        directory: str,
        base_offset: int,
        index_interval_bytes: int,
        suffix: str = "",
    ) -> None:
        super().__init__(disk, directory, base_offset, suffix)
        self._indexes = SegmentIndexes(disk, directory, base_offset, index_interval_bytes, suffix)
        self._recent: dict[int, int] = {}  # base offset -> position, of batches found recently

    def read(self, offset: int, max_bytes: int, end: int) -> bytes:
        """Return whole batches, beginning with the batch that holds `offset`. If compaction removed
        that batch, begin with the next one.

        All records of the result are below the offset `end`. If the first batch reaches beyond
        `end`, the result is empty. Otherwise the first batch is returned even if it exceeds
        `max_bytes`. Raise CorruptLog if all batches end before `offset`, or at a damaged header on
        the way. The CRCs are not checked."""
        start = self.position_of(offset)
        if start == self.size:
            raise CorruptLog(self.path, start, offset, f"no batch up to {self.next_offset} follows")
        stop = self.size if end >= self.next_offset else self.position_of(end)
        if stop - start > max_bytes:
            stop = self._boundary(start, start + max_bytes)
        return self.file.pread(stop - start, start) if stop > start else b""

    def position_of(self, offset: int) -> int:
        """Return the byte position of the first batch whose last offset is not below `offset`.

        The result is `size` if there is no such batch. Raise CorruptLog at a damaged header on the
        way."""
        if offset <= self.base_offset:
            return 0
        if offset >= self.next_offset:
            return self.size
        if (recent := self._recent.get(offset)) is not None:
            return recent
        for position, header in self.walk(self._near(offset)):
            if header.next_offset > offset:
                if header.base_offset == offset:
                    self._remember(offset, position)
                return position
        return self.size

    def end_below(self, offset: int) -> int:
        """Return the offset that follows the last batch which ends at or below `offset`.

        The result is the base offset if there is no such batch. Raise CorruptLog at a damaged
        header on the way."""
        end = self.base_offset
        for _, header in self.walk(self._near(offset - 1)):
            if header.next_offset > offset:
                break
            end = header.next_offset
        return end

    def rebuild_indexes(self) -> None:
        """Rebuild the offset index and the time index from the batches. Block for a walk over the
        whole file.

        The indexes of an active segment stay in memory, ready for more entries. Those of a sealed
        segment are written to their files. Raise CorruptLog at a damaged header; the indexes then
        end before it.
        """
        active = self._indexes.in_memory
        self._indexes.start()
        for position, header in self.walk(0):
            self._indexes.note(position, header)
        if not active:
            self._indexes.seal()

    def _near(self, offset: int) -> int:
        """Return the position of an indexed batch that ends at or before `offset`, or 0."""
        entry = self._indexes.by_offset(offset)
        if entry is not None and not self._agrees(entry):
            self.rebuild_indexes()
            entry = self._indexes.by_offset(offset)
        return entry[1] if entry else 0

    def _boundary(self, start: int, limit: int) -> int:
        """Return the last start of a batch up to `limit`, or the end of the batch at `start`."""
        entry = self._indexes.by_position(limit)
        if entry is not None and not self._agrees(entry):
            self.rebuild_indexes()
            entry = self._indexes.by_position(limit)
        boundary = start
        for position, header in self.walk(max(start, entry[1]) if entry else start):
            end = position + header.size_bytes
            if end > limit and position > start:
                self._remember(header.base_offset, position)
                return position
            boundary = end
        return boundary

    def _agrees(self, entry: tuple[int, int]) -> bool:
        """Return True if an entry of the offset index names the batch at its position."""
        last_offset, position = entry
        if not 0 < position <= self.size - HEADER_BYTES:
            return False
        try:
            return self.header_at(position).last_offset == last_offset
        except CorruptLog:
            return False

    def _remember(self, offset: int, position: int) -> None:
        recent = self._recent
        if len(recent) >= MAX_RECENT_POSITIONS:
            del recent[next(iter(recent))]
        recent[offset] = position
