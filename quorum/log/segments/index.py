"""The sparse indexes of one segment: offset to position, and timestamp to offset.

An index is a cache of facts that the batches hold. It is never synced and never trusted. A reader
that follows an entry compares it with the batch at its position, and has the index rebuilt if they
differ (R51, tests/scenarios). Damage to an index therefore costs time, never records.

The indexes of the active segment are in memory. They are written to their files when the segment is
sealed or the log is closed. The indexes of a sealed segment are searched in their files and hold no
memory.
"""

from __future__ import annotations

import struct
from bisect import bisect_right

from quorate.quorum.log.batches.batch import PREFIX_BYTES, BatchHeader
from quorate.quorum.log.files.names import OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, segment_file
from quorate.quorum.seams import Disk, File

NO_TIMESTAMP = -1
"""The largest timestamp of a batch or segment whose records have none."""
OFFSET_ENTRY = struct.Struct(">ii")  # last offset of a batch - base offset, position of the batch
TIME_ENTRY = struct.Struct(
    ">qi"
)  # largest timestamp so far, last offset of its batch - base offset


class SparseIndex:
    """One index: entries of two numbers, which both rise from entry to entry.

    The entries are in memory (after `start` or `load`) or in the file. `append`, `keep` and `save`
    need them in memory; the other methods work in both states. Used in the log's thread only.
    """

    def __init__(self, disk: Disk, path: str, entry: struct.Struct) -> None:
        self.path = path
        self._disk = disk
        self._entry = entry
        self._memory: bytearray | None = None
        self._file: File | None = None
        self._count: int | None = None

    def start(self) -> None:
        """Make the index empty, in memory."""
        self._memory = bytearray()

    def load(self) -> bool:
        """Load the entries into memory.

        Return False, and change nothing, if there is no file or its size is not a multiple of an
        entry's."""
        file = self._opened()
        if file is None:
            return False
        data = file.pread(file.size(), 0)
        if len(data) % self._entry.size:
            return False
        self._memory = bytearray(data)
        return True

    def save(self) -> None:
        """Write the entries in memory to the file, without a sync. An OSError may leave a part of
        them there."""
        assert self._memory is not None
        file = self._opened() or self._disk.open(self.path, create=True)
        if file.size() > len(self._memory):
            file.truncate(len(self._memory))
        file.pwrite(self._memory, 0)
        self._file = file

    def release_memory(self) -> None:
        """Release the memory. The entries that were saved are searched in the file from then on."""
        self._memory = None
        self._count = None

    @property
    def in_memory(self) -> bool:
        """True if the entries are in memory."""
        return self._memory is not None

    @property
    def whole(self) -> bool:
        """True if no part of an entry follows the last one."""
        if self._memory is not None:
            return True
        file = self._opened()
        return file is None or file.size() % self._entry.size == 0

    def __len__(self) -> int:
        if self._memory is not None:
            return len(self._memory) // self._entry.size
        if self._count is None:
            file = self._opened()
            self._count = file.size() // self._entry.size if file else 0
        return self._count

    def at(self, index: int) -> tuple[int, int]:
        """Return an entry by its number; (-1, -1), which agrees with no batch, if the file is too
        short."""
        size = self._entry.size
        if self._memory is not None:
            first, second = self._entry.unpack_from(self._memory, index * size)
        else:
            file = self._opened()
            data = file.pread(size, index * size) if file else b""
            if len(data) < size:
                return -1, -1  # the file was cut; no batch agrees with this entry
            first, second = self._entry.unpack(data)
        return first, second

    @property
    def memory_bytes(self) -> int:
        """The size of the entries in memory, or 0 if they are not in memory."""
        return 0 if self._memory is None else len(self._memory)

    def append(self, first: int, second: int) -> None:
        """Add an entry, whose numbers must be larger than those of the last one."""
        assert self._memory is not None
        self._memory += self._entry.pack(first, second)

    def last(self) -> tuple[int, int] | None:
        """Return the last entry, or None if there is none."""
        return self.at(len(self) - 1) if len(self) else None

    def last_by_first(self, value: int) -> int:
        """Return the number of the last entry whose first number is at most `value`, or -1 if none
        is."""
        return bisect_right(range(len(self)), value, key=lambda index: self.at(index)[0]) - 1

    def last_by_second(self, value: int) -> int:
        """Return the number of the last entry whose second number is at most `value`, or -1 if none
        is."""
        return bisect_right(range(len(self)), value, key=lambda index: self.at(index)[1]) - 1

    def keep(self, count: int) -> None:
        """Keep only the first `count` entries."""
        assert self._memory is not None
        del self._memory[count * self._entry.size :]

    def close(self) -> None:
        """Close the file. The next use opens it again."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def moved_to(self, directory: str) -> None:
        """Note that the file lies in `directory` now. The next use opens it there."""
        self.close()
        self.path = f"{directory}/{self.path.rpartition('/')[2]}"

    def remove(self) -> None:
        """Close and remove the file, if there is one."""
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
    """Both indexes of a segment, and the rule that decides when they get an entry.

    A batch gets an entry if more than `interval_bytes` of batches precede it without one.
    Invariant: while the indexes are in memory, `max_timestamp_ms` is the largest timestamp of all
    noted batches. Used in the log's thread only.
    """

    def __init__(
        self,
        disk: Disk,
        directory: str,
        base_offset: int,
        interval_bytes: int,
        suffix: str = "",
    ) -> None:
        """`base_offset` is that of the segment; entries hold offsets relative to it. `suffix`
        follows the names of both files."""
        self.max_timestamp_ms = NO_TIMESTAMP
        self.max_timestamp_offset = base_offset
        """The last offset of the first batch that has the largest timestamp."""
        self._base_offset = base_offset
        self._interval_bytes = interval_bytes
        self.needed_bytes = 0
        """The size that the larger index in memory has after one more entry. As in Kafka, the time
        index keeps room for the entry that `seal` adds."""
        self._unindexed_bytes = 0
        self._indexed_position = -1
        """Position of the batch that got the last entry since the indexes were loaded or cut."""
        self._offsets = SparseIndex(
            disk, segment_file(directory, base_offset, OFFSET_INDEX_SUFFIX) + suffix, OFFSET_ENTRY
        )
        self._times = SparseIndex(
            disk, segment_file(directory, base_offset, TIME_INDEX_SUFFIX) + suffix, TIME_ENTRY
        )

    @property
    def files(self) -> tuple[SparseIndex, SparseIndex]:
        """The offset index and the time index."""
        return self._offsets, self._times

    @property
    def in_memory(self) -> bool:
        """True if both indexes are in memory."""
        return self._offsets.in_memory

    @property
    def whole(self) -> bool:
        """True if both files end with a whole entry. A power cut may have left a part of one."""
        return self._offsets.whole and self._times.whole

    def start(self) -> None:
        """Make both indexes empty, in memory."""
        self._offsets.start()
        self._times.start()
        self._measure()
        self._unindexed_bytes = 0
        self._indexed_position = -1
        self.max_timestamp_ms = NO_TIMESTAMP
        self.max_timestamp_offset = self._base_offset

    def load(self) -> bool:
        """Load both indexes into memory.

        Return False, with both empty, if a file is missing or cannot be an index."""
        self._indexed_position = -1
        if self._offsets.load() and self._times.load():
            self._measure()
            return True
        self.start()
        return False

    def seal(self) -> None:
        """Write both indexes to their files and release the memory. After an OSError both stay in
        memory."""
        if self.in_memory:
            self._add_time()
            self._offsets.save()
            self._times.save()
            self._offsets.release_memory()
            self._times.release_memory()

    def note(self, position: int, header: BatchHeader) -> None:
        """Note a batch that was appended at `position`, and add an entry if one is due."""
        if header.max_timestamp_ms > self.max_timestamp_ms:
            self.note_timestamp(header)
        if self._unindexed_bytes > self._interval_bytes:
            assert position > self._indexed_position, "index entries rise"
            self._indexed_position = position
            self._offsets.append(header.last_offset - self._base_offset, position)
            self._add_time()
            self._measure()
            self._unindexed_bytes = 0
        self._unindexed_bytes += PREFIX_BYTES + header.length

    def note_indexed(self, header: BatchHeader) -> None:
        """Note the batch of the last entry again, when a segment is resumed."""
        self.note_timestamp(header)
        self._unindexed_bytes = header.size_bytes

    def note_timestamp(self, header: BatchHeader) -> None:
        """Raise the largest timestamp to that of a batch."""
        if header.max_timestamp_ms > self.max_timestamp_ms:
            self.max_timestamp_ms = header.max_timestamp_ms
            self.max_timestamp_offset = header.last_offset

    def read_max_timestamp(self) -> None:
        """Set the largest timestamp to that of the last entry of the time index."""
        last = self._times.last()
        if last is None:
            self.max_timestamp_ms, self.max_timestamp_offset = NO_TIMESTAMP, self._base_offset
        else:
            self.max_timestamp_ms = last[0]
            self.max_timestamp_offset = self._base_offset + last[1]

    def by_offset(self, offset: int) -> tuple[int, int] | None:
        """Return (last offset, position) of the last indexed batch that ends at or before `offset`.

        Return None if there is none."""
        return self._placed(self._offsets.last_by_first(offset - self._base_offset))

    def by_position(self, position: int) -> tuple[int, int] | None:
        """Return (last offset, position) of the last indexed batch that starts at or before
        `position`.

        Return None if there is none."""
        return self._placed(self._offsets.last_by_second(position))

    def last(self) -> tuple[int, int] | None:
        """Return (last offset, position) of the last indexed batch, or None if there is none."""
        return self._placed(len(self._offsets) - 1)

    def by_time(self, timestamp_ms: int) -> tuple[int, int] | None:
        """Return (timestamp, offset) of the last entry that is not later than `timestamp_ms`.

        The offset is the last one of a batch that has this largest timestamp. No record up to that
        offset has a later one. Return None if there is no such entry."""
        index = self._times.last_by_first(timestamp_ms)
        if index < 0:
            return None
        time, relative = self._times.at(index)
        return time, self._base_offset + relative

    def truncate_to(self, position: int, offset: int) -> None:
        """Keep the entries of batches that lie before `position` and end before `offset`."""
        self._indexed_position = -1
        self._offsets.keep(self._offsets.last_by_second(position - 1) + 1)
        self._times.keep(self._times.last_by_second(offset - self._base_offset - 1) + 1)
        self._measure()

    def _measure(self) -> None:
        self.needed_bytes = max(
            self._offsets.memory_bytes + OFFSET_ENTRY.size,
            self._times.memory_bytes + 2 * TIME_ENTRY.size,
        )

    def close(self) -> None:
        """Close both files."""
        self._offsets.close()
        self._times.close()

    def remove(self) -> None:
        """Remove both files."""
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
