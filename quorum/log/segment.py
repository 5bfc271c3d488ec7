"""One segment: a file of batches from a base offset on, with its two indexes.

The last segment of a log is active: appended to, its indexes in memory. The others are sealed:
they hold no memory, and file, size and indexes are opened when first asked for.

Invariants: batches lie one after another from byte 0 to `size`; `next_offset` is the base offset
of what follows. Finding a position costs a search in the index and a walk over about one index
interval.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from quorate.quorum.log.batch import HEADER_BYTES, BatchHeader, read_header
from quorate.quorum.log.errors import CorruptBatch, CorruptLog
from quorate.quorum.log.index import NO_TIMESTAMP, SegmentIndexes
from quorate.quorum.log.names import (
    DELETED_SUFFIX,
    LOG_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    segment_file,
)
from quorate.quorum.seams import Buffer, Disk, File
from quorate.quorum.steps import Steps

MAX_RELATIVE_OFFSET = 2**31 - 1
MAX_RECENT_POSITIONS = 64
WALK_BYTES = 4096  # read at once when headers are walked over
HEADERS_PER_STEP = 256


PositionedBatch = tuple[int, BatchHeader]
"""A batch and where it starts in the data that is appended."""


class Segment:
    def __init__(
        self, disk: Disk, directory: str, base_offset: int, index_interval_bytes: int
    ) -> None:
        self.base_offset = base_offset
        self.next_offset = base_offset
        self.path = segment_file(directory, base_offset, LOG_SUFFIX)
        self.dirty = False
        """Holds bytes for which no sync was asked yet."""
        self._disk = disk
        self._directory = directory
        self._indexes = SegmentIndexes(disk, directory, base_offset, index_interval_bytes)
        self._file: File | None = None
        self._size: int | None = None
        self._first_timestamp_ms: int | None = None
        self._none_has_timestamp = False
        """Of a sealed segment: true once a walk found it."""
        self._removed = False
        self._recent: dict[int, int] = {}  # offset -> position of the batch that starts there

    # -- life ------------------------------------------------------------------------------------

    def create(self) -> None:
        """New, empty and active. The file comes with the first append, or by `create_file`."""
        self._size = 0
        self._indexes.start()

    def create_file(self) -> File:
        self._file = self._disk.open(self.path, create=True)
        return self._file

    def resume(self) -> None:
        """Make the segment active. Its end is found by walking from the last entry of the index, or
        from the start when the index does not agree with the batches."""
        loaded = self._indexes.in_memory or self._indexes.load()
        if not (loaded and self._indexes_agree()):
            self._indexes.start()
        self._indexes.read_max_timestamp()
        self._none_has_timestamp = False
        self._recent.clear()
        last = self._indexes.last()
        self.next_offset = self.base_offset
        for position, header in self.walk(last[1] if last else 0):
            if last and position == last[1]:
                self._indexes.note_indexed(header)
            else:
                self._indexes.note(position, header)
            self.next_offset = header.next_offset

    def rebuild_indexes(self) -> None:
        """From the batches, as after a crash. An active segment stays active."""
        active = self._indexes.in_memory
        self._indexes.start()
        for position, header in self.walk(0):
            self._indexes.note(position, header)
        if not active:
            self._indexes.seal()

    @property
    def is_active(self) -> bool:
        return self._indexes.in_memory

    def begin_scan(self) -> None:
        """Recovery takes batch after batch with `accept`, and `cut`s what it does not take."""
        self._indexes.start()
        self._none_has_timestamp = False
        self._recent.clear()
        self.next_offset = self.base_offset

    def accept(self, position: int, header: BatchHeader) -> None:
        self._indexes.note(position, header)
        self.next_offset = header.next_offset

    def cut(self, position: int) -> None:
        self.file.truncate(position)
        self._size = position

    def seal(self) -> None:
        self._indexes.seal()

    def close(self) -> None:
        """Nothing of the segment stays in memory or open; it must be resumed to be appended to."""
        if self._size:  # else there may not even be a file
            self._indexes.seal()
        self._indexes.close()
        if self._file is not None:
            self._file.close()
            self._file = None

    def leave(self) -> None:
        """Its log does not have it any more: it may be gone before it was made durable."""
        self._removed = True

    def discard(self) -> None:
        """Close the files and make nothing durable: the segment's directory is deleted."""
        self._removed = True
        self._indexes.close()
        if self._file is not None:
            self._file.close()
            self._file = None

    def remove(self) -> None:
        """In any thread."""
        self._remove_beside()
        if self._disk.exists(self.path):
            self._disk.remove(self.path)

    def retire(self) -> str:
        """Its names are free at once; what is left to be removed, later, in any thread. After a
        crash it is litter."""
        self._remove_beside()
        self._disk.rename(self.path, self.path + DELETED_SUFFIX)
        return self.path + DELETED_SUFFIX

    def _remove_beside(self) -> None:
        """The indexes first: a `.log` without them is whole, they without it are litter."""
        self._removed = True
        self._indexes.remove()
        if self._file is not None:
            self._file.close()
            self._file = None
        transactions = segment_file(self._directory, self.base_offset, TRANSACTION_INDEX_SUFFIX)
        if self._disk.exists(transactions):
            self._disk.remove(transactions)

    def sync(self) -> None:
        """In any thread. A segment that is removed meanwhile has nothing left to be made
        durable."""
        try:
            self.file.sync()
        except FileNotFoundError:
            if not self._removed:
                raise

    # -- what it holds ---------------------------------------------------------------------------

    @property
    def removed(self) -> bool:
        """True once the segment has left its log."""
        return self._removed

    @property
    def file(self) -> File:
        if self._file is None:
            self._file = self._disk.open(self.path)
        return self._file

    @property
    def size(self) -> int:
        if self._size is None:
            self._size = self.file.size()
        return self._size

    @property
    def max_timestamp_ms(self) -> int:
        """NO_TIMESTAMP when it is empty."""
        self._know_max_timestamp()
        return self._indexes.max_timestamp_ms

    @property
    def max_timestamp_offset(self) -> int:
        self._know_max_timestamp()
        return self._indexes.max_timestamp_offset

    @property
    def first_timestamp_ms(self) -> int:
        """The largest of the first batch: the clock by which a segment gets too old."""
        if self._first_timestamp_ms is None:
            if not self.size:
                return NO_TIMESTAMP
            self._first_timestamp_ms = self.header_at(0).max_timestamp_ms
        return self._first_timestamp_ms

    def fits(self, last_offset: int) -> bool:
        """Can the indexes say it?"""
        return last_offset - self.base_offset <= MAX_RELATIVE_OFFSET

    # -- append, read, truncate ------------------------------------------------------------------

    def append(self, data: Buffer, placed: list[PositionedBatch]) -> None:
        """What a failed write left is cut off again: nothing may lie behind the next append."""
        file = self._file or self.create_file()
        start = self.size
        try:
            file.pwrite(data, start)
        except OSError:
            file.truncate(start)
            raise
        self._remember(placed[0][1].base_offset, start)
        for position, header in placed:
            self._indexes.note(start + position, header)
        self._size = start + len(data)
        self.next_offset = placed[-1][1].next_offset

    def read(self, offset: int, max_bytes: int, end: int) -> bytes:
        """Whole batches from the one that holds `offset`, all below `end`, at least one if any
        is."""
        start = self.position_of(offset)
        if start == self.size:
            raise CorruptLog(self.path, start, offset, f"no batch up to {self.next_offset} follows")
        stop = self.size if end >= self.next_offset else self.position_of(end)
        if stop - start > max_bytes:
            stop = self._boundary(start, start + max_bytes)
        return self.file.pread(stop - start, start) if stop > start else b""

    def position_of(self, offset: int) -> int:
        """Where the first batch lies that ends after `offset` begins; `size` when there is none."""
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

    def offset_before_time(self, timestamp_ms: int) -> int:
        """Return an offset such that no record below it, in this segment, is as late as
        `timestamp_ms`: where to start looking for the first one that is."""
        entry = self._indexes.by_time(timestamp_ms)
        if entry is not None and not self._time_agrees(*entry):
            self.rebuild_indexes()
            entry = self._indexes.by_time(timestamp_ms)
        return entry[1] if entry else self.base_offset

    def truncate_to(self, offset: int) -> None:
        """Drop the batch that holds `offset` and all after it; the segment is active then."""
        position = self.position_of(offset)
        self.cut(position)
        self._first_timestamp_ms = None
        if self._indexes.in_memory or self._indexes.load():
            self._indexes.truncate_to(position, offset)
        self.resume()

    def walk(self, position: int) -> Iterator[tuple[int, BatchHeader]]:
        """(position, header) of each batch from `position` on, where one must start."""
        file, size = self.file, self.size
        chunk, chunk_from = b"", position
        while position < size:
            if position + HEADER_BYTES > chunk_from + len(chunk):
                chunk, chunk_from = file.pread(WALK_BYTES, position), position
            header = self._header(chunk, position - chunk_from, position)
            yield position, header
            position += header.size_bytes

    def header_at(self, position: int) -> BatchHeader:
        return self._header(self.file.pread(HEADER_BYTES, position), 0, position)

    def _header(self, chunk: bytes, at: int, position: int) -> BatchHeader:
        try:
            header = read_header(chunk, at)
        except CorruptBatch as error:
            raise CorruptLog(self.path, position, self.next_offset, str(error)) from error
        if position + header.size_bytes > self.size:
            raise CorruptLog(
                self.path, position, header.base_offset, f"its {header.size_bytes} bytes are cut"
            )
        return header

    def _near(self, offset: int) -> int:
        """Position of an indexed batch that ends at or before `offset`; else the start."""
        entry = self._indexes.by_offset(offset)
        if entry is not None and not self._agrees(entry):
            self.rebuild_indexes()
            entry = self._indexes.by_offset(offset)
        return entry[1] if entry else 0

    def _boundary(self, start: int, limit: int) -> int:
        """The last start of a batch up to `limit`, but after the first batch from `start`."""
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
        last_offset, position = entry
        if not 0 < position <= self.size - HEADER_BYTES:
            return False
        try:
            return self.header_at(position).last_offset == last_offset
        except CorruptLog:
            return False

    def _indexes_agree(self) -> bool:
        """Do the last entries of both indexes point to batches that are as they say?"""
        last = self._indexes.last()
        if last is not None and not self._agrees(last):
            return False
        self._indexes.read_max_timestamp()
        if self._indexes.max_timestamp_ms == NO_TIMESTAMP:
            return True
        return self._time_agrees(self._indexes.max_timestamp_ms, self._indexes.max_timestamp_offset)

    def _time_agrees(self, timestamp_ms: int, offset: int) -> bool:
        """Is that the largest timestamp of the batch that holds `offset`?"""
        for _, header in self.walk(self._near(offset)):
            if header.next_offset > offset:
                return header.base_offset <= offset and header.max_timestamp_ms == timestamp_ms
        return False

    def learn_max_timestamp(self) -> Steps[None]:
        """Find out the largest timestamp without blocking for long, so that `max_timestamp_ms`
        need not read the segment."""
        if self._max_is_known:
            return
        if not self._indexes_agree():
            self.rebuild_indexes()
        position = 0
        while position < self.size and not self._removed and not self._max_is_known:
            for place, header in islice(self.walk(position), HEADERS_PER_STEP):
                if header.max_timestamp_ms > NO_TIMESTAMP:  # its entry is missing
                    self.rebuild_indexes()
                    return
                position = place + header.size_bytes
            yield
        if self._removed or self._max_is_known:
            return
        self._none_has_timestamp = True

    @property
    def _max_is_known(self) -> bool:
        """An active segment takes note of every batch. A sealed one has an entry in its time index,
        unless none of its batches has a timestamp; that is looked up once, for it takes a walk over
        the whole segment."""
        return (
            self._indexes.in_memory
            or self._none_has_timestamp
            or self._indexes.max_timestamp_ms != NO_TIMESTAMP
        )

    def _know_max_timestamp(self) -> None:
        if self._max_is_known or not self.size:
            return
        if not self._indexes_agree() or self._indexes.max_timestamp_ms == NO_TIMESTAMP:
            self.rebuild_indexes()
        self._none_has_timestamp = self._indexes.max_timestamp_ms == NO_TIMESTAMP

    def _remember(self, offset: int, position: int) -> None:
        recent = self._recent
        if len(recent) >= MAX_RECENT_POSITIONS:
            del recent[next(iter(recent))]
        recent[offset] = position
