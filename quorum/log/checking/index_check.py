"""Compares the indexes of a segment with its batches, in one pass over both.

An entry of the offset index points to the start of a batch. It names the last offset of that batch,
or, in segments that Apache Kafka wrote, of a later batch of the same append. An entry of the time
index names a batch by an offset in it and repeats the batch's largest timestamp. Apache Kafka
allocates the indexes of its active segment in advance and leaves zeros after the entries.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from quorate.quorum.log.batches.batch import BatchHeader
from quorate.quorum.log.files.checkpoints import read_small
from quorate.quorum.log.files.names import OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, segment_file
from quorate.quorum.log.segments.index import OFFSET_ENTRY, TIME_ENTRY
from quorate.quorum.seams import Disk

Entry = tuple[int, int]


class IndexCheck:
    """The check of both indexes of one segment. Nothing is written.

    The caller passes all batches in order to `add_batch`, and then reads `wrong`.
    """

    def __init__(self, disk: Disk, directory: str, base_offset: int, *, is_last: bool) -> None:
        """Read both indexes. `is_last` says that the segment is the last one, which may lack them.

        Raise CorruptCheckpoint if an index file is too large."""
        self._base_offset = base_offset
        self._is_last = is_last
        self._offsets = _Entries(disk, directory, base_offset, OFFSET_INDEX_SUFFIX, OFFSET_ENTRY)
        self._times = _Entries(disk, directory, base_offset, TIME_INDEX_SUFFIX, TIME_ENTRY)
        self._started: Entry | None = None
        """An offset entry whose position was reached, but not yet its offset."""

    def add_batch(self, position: int, header: BatchHeader) -> None:
        """Compare the entries that point to this batch with it."""
        self._take_offset(position, header)
        entry = self._times.now
        if entry is not None and entry[1] + self._base_offset <= header.last_offset:
            timestamp_ms, relative = entry
            offset = relative + self._base_offset
            if offset < header.base_offset or timestamp_ms != header.max_timestamp_ms:
                self._times.problem = (
                    f"the batch of offset {offset} has a different largest timestamp"
                )
            self._times.step()

    def _take_offset(self, position: int, header: BatchHeader) -> None:
        entry = self._offsets.now
        if entry is not None and entry[1] <= position:
            if entry[1] < position or self._started is not None:
                self._offsets.problem = f"no batch begins at byte {entry[1]}"
            self._started = entry
            self._offsets.step()
        if self._started is not None:
            last_offset = self._started[0] + self._base_offset
            if last_offset < header.last_offset:
                self._offsets.problem = f"no batch ends with offset {last_offset}"
            if last_offset <= header.last_offset:
                self._started = None

    def wrong(self, end_offset: int) -> Iterator[tuple[str, str]]:
        """Yield (file suffix, fault) for each faulty index, after the last batch.

        `end_offset` is the offset after that batch."""
        if self._started is not None:
            self._offsets.problem = (
                "the segment has no batch that ends with offset "
                f"{self._started[0] + self._base_offset}"
            )
        for entries in (self._offsets, self._times):
            if entries.missing:
                if not self._is_last and end_offset > self._base_offset:
                    yield entries.suffix, "is missing"
                continue
            if entries.now is not None and not entries.problem:
                entries.problem = f"entry {entries.now} points beyond the end of the segment"
            if entries.problem:
                yield entries.suffix, f"contradicts its segment: {entries.problem}"


class _Entries:
    """The entries of one index, one after another; `now` is the current one."""

    def __init__(
        self, disk: Disk, directory: str, base_offset: int, suffix: str, entry: struct.Struct
    ) -> None:
        self.suffix = suffix
        self.problem = ""
        content = read_small(disk, segment_file(directory, base_offset, suffix))
        self.missing = content is None
        content = (content or b"").rstrip(b"\0")
        rest = -len(content) % entry.size
        self._rows = entry.iter_unpack(content + bytes(rest))
        self.now: Entry | None = None
        self._next()

    def step(self) -> None:
        """Go to the next entry."""
        self._next()

    def _next(self) -> None:
        before, row = self.now, next(self._rows, None)
        self.now = None if row is None else (row[0], row[1])
        if before is not None and self.now is not None and not self.problem:
            rising = before[0] < self.now[0] and before[1] < self.now[1]
            self.problem = "" if rising else f"entry {self.now} follows entry {before}"
