"""Sparse indexes of one segment: offset -> position (8 bytes an entry) and timestamp -> offset
(12).

An index is a cache of what the segment says. It is never synced and never trusted: who follows an
entry checks it against the batch it points to, and has the index rebuilt when they disagree
(R51). So damage to an index can cost time, never records.

The index of the active segment lives in memory and reaches its file when the segment is sealed or
the log closed; a sealed one is searched in its file and holds no memory.
"""

from __future__ import annotations

import struct
from bisect import bisect_right

from quorate.quorum.log.batch import PREFIX_BYTES, BatchHeader
from quorate.quorum.log.names import OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, segment_file
from quorate.quorum.seams import Disk, File

NO_TIMESTAMP = -1
OFFSET_ENTRY = struct.Struct(">ii")  # last offset of a batch - base offset, position of the batch
TIME_ENTRY = struct.Struct(
    ">qi"
)  # largest timestamp so far, last offset of its batch - base offset


class SparseIndex:
    """Entries of two rising numbers. `at` and the searches work in both states, the rest in
    memory."""

    def __init__(self, disk: Disk, path: str, entry: struct.Struct) -> None:
        self.path = path
        self._disk = disk
        self._entry = entry
        self._memory: bytearray | None = None
        self._file: File | None = None
        self._count: int | None = None

    def start(self) -> None:
        """Empty, in memory."""
        self._memory = bytearray()

    def load(self) -> bool:
        """Into memory; False when there is no such file or it cannot be an index."""
        file = self._opened()
        if file is None:
            return False
        data = file.pread(file.size(), 0)
        if len(data) % self._entry.size:
            return False
        self._memory = bytearray(data)
        return True

    def save(self) -> None:
        """Write what is in memory."""
        assert self._memory is not None
        file = self._opened() or self._disk.open(self.path, create=True)
        if file.size() > len(self._memory):
            file.truncate(len(self._memory))
        file.pwrite(self._memory, 0)
        self._file = file

    def release_memory(self) -> None:
        """What was saved is searched in its file from now on."""
        self._memory = None
        self._count = None

    @property
    def in_memory(self) -> bool:
        return self._memory is not None

    def __len__(self) -> int:
        if self._memory is not None:
            return len(self._memory) // self._entry.size
        if self._count is None:
            file = self._opened()
            self._count = file.size() // self._entry.size if file else 0
        return self._count

    def at(self, index: int) -> tuple[int, int]:
        size = self._entry.size
        if self._memory is not None:
            first, second = self._entry.unpack_from(self._memory, index * size)
        else:
            file = self._opened()
            data = file.pread(size, index * size) if file else b""
            if len(data) < size:
                return -1, -1  # cut behind our back: no batch agrees with it
            first, second = self._entry.unpack(data)
        return first, second

    def append(self, first: int, second: int) -> None:
        assert self._memory is not None
        self._memory += self._entry.pack(first, second)

    def last(self) -> tuple[int, int] | None:
        return self.at(len(self) - 1) if len(self) else None

    def last_by_first(self, value: int) -> int:
        """Number of the last entry whose first number is at most `value`; -1 when none is."""
        return bisect_right(range(len(self)), value, key=lambda index: self.at(index)[0]) - 1

    def last_by_second(self, value: int) -> int:
        return bisect_right(range(len(self)), value, key=lambda index: self.at(index)[1]) - 1

    def keep(self, count: int) -> None:
        assert self._memory is not None
        del self._memory[count * self._entry.size :]

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def remove(self) -> None:
        self.close()
        if self._disk.exists(self.path):
            self._disk.remove(self.path)

    def _opened(self) -> File | None:
        if self._file is None:
            try:
                self._file = self._disk.open(self.path)
            except FileNotFoundError:
                return None
        return self._file


class SegmentIndexes:
    """Both indexes of a segment, and what decides when they get an entry."""

    def __init__(self, disk: Disk, directory: str, base_offset: int, interval_bytes: int) -> None:
        self.max_timestamp_ms = NO_TIMESTAMP
        self.max_timestamp_offset = base_offset
        """The last offset of the first batch that has it."""
        self._base_offset = base_offset
        self._interval_bytes = interval_bytes
        self._unindexed_bytes = 0
        self._offsets = SparseIndex(
            disk, segment_file(directory, base_offset, OFFSET_INDEX_SUFFIX), OFFSET_ENTRY
        )
        self._times = SparseIndex(
            disk, segment_file(directory, base_offset, TIME_INDEX_SUFFIX), TIME_ENTRY
        )

    @property
    def in_memory(self) -> bool:
        return self._offsets.in_memory

    def start(self) -> None:
        self._offsets.start()
        self._times.start()
        self._unindexed_bytes = 0
        self.max_timestamp_ms = NO_TIMESTAMP
        self.max_timestamp_offset = self._base_offset

    def load(self) -> bool:
        """Into memory; False, and both empty, when a file is missing or cannot be an index."""
        if self._offsets.load() and self._times.load():
            return True
        self.start()
        return False

    def seal(self) -> None:
        """Into their files. When that fails, both stay as they were."""
        if self.in_memory:
            self._add_time()
            self._offsets.save()
            self._times.save()
            self._offsets.release_memory()
            self._times.release_memory()

    def note(self, position: int, header: BatchHeader) -> None:
        """A batch was appended at `position`."""
        if header.max_timestamp_ms > self.max_timestamp_ms:
            self.note_timestamp(header)
        if self._unindexed_bytes > self._interval_bytes:
            self._offsets.append(header.last_offset - self._base_offset, position)
            self._add_time()
            self._unindexed_bytes = 0
        self._unindexed_bytes += PREFIX_BYTES + header.length

    def note_indexed(self, header: BatchHeader) -> None:
        """The batch of the last entry, met again when a segment is resumed."""
        self.note_timestamp(header)
        self._unindexed_bytes = header.size_bytes

    def note_timestamp(self, header: BatchHeader) -> None:
        if header.max_timestamp_ms > self.max_timestamp_ms:
            self.max_timestamp_ms = header.max_timestamp_ms
            self.max_timestamp_offset = header.last_offset

    def read_max_timestamp(self) -> None:
        """What the last entry of the time index says."""
        last = self._times.last()
        if last is None:
            self.max_timestamp_ms, self.max_timestamp_offset = NO_TIMESTAMP, self._base_offset
        else:
            self.max_timestamp_ms = last[0]
            self.max_timestamp_offset = self._base_offset + last[1]

    def by_offset(self, offset: int) -> tuple[int, int] | None:
        """(last offset, position) of the last indexed batch that ends at or before `offset`."""
        return self._placed(self._offsets.last_by_first(offset - self._base_offset))

    def by_position(self, position: int) -> tuple[int, int] | None:
        """(last offset, position) of the last indexed batch that starts at or before `position`."""
        return self._placed(self._offsets.last_by_second(position))

    def last(self) -> tuple[int, int] | None:
        return self._placed(len(self._offsets) - 1)

    def by_time(self, timestamp_ms: int) -> tuple[int, int] | None:
        """(timestamp, offset) of the last entry that is not later than `timestamp_ms`: nothing
        before that offset is later."""
        index = self._times.last_by_first(timestamp_ms)
        if index < 0:
            return None
        time, relative = self._times.at(index)
        return time, self._base_offset + relative

    def truncate_to(self, position: int, offset: int) -> None:
        """Keep what speaks of batches before `position`, which end before `offset`."""
        self._offsets.keep(self._offsets.last_by_second(position - 1) + 1)
        self._times.keep(self._times.last_by_second(offset - self._base_offset - 1) + 1)

    def close(self) -> None:
        self._offsets.close()
        self._times.close()

    def remove(self) -> None:
        self._offsets.remove()
        self._times.remove()

    def _placed(self, index: int) -> tuple[int, int] | None:
        if index < 0:
            return None
        relative, position = self._offsets.at(index)
        return self._base_offset + relative, position

    def _add_time(self) -> None:
        last = self._times.last()
        if self.max_timestamp_ms > (last[0] if last else NO_TIMESTAMP):
            relative = self.max_timestamp_offset - self._base_offset
            self._times.append(self.max_timestamp_ms, relative)
