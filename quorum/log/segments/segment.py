"""One segment of a log: a file of batches from a base offset on, with its two indexes.

The last segment of a log is active: it is appended to, and its indexes are in memory. The other
segments are sealed: they hold no memory, and their file, size and indexes are loaded on first use.
"""

from __future__ import annotations

from itertools import islice

from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.log.batches.batch import BatchHeader, Placed
from quorate.quorum.log.batches.batch_file import MAX_RELATIVE_OFFSET
from quorate.quorum.log.files.errors import CorruptLog
from quorate.quorum.log.files.names import DELETED_SUFFIX, TRANSACTION_INDEX_SUFFIX, segment_file
from quorate.quorum.log.segments.index import NO_TIMESTAMP
from quorate.quorum.log.segments.indexed_file import IndexedBatchFile
from quorate.quorum.seams import Buffer, Disk

"""An index entry holds an offset relative to the base offset in 31 bits."""
NO_JITTER = -1
HEADERS_PER_STEP = 256
"""Batch headers that one step of long work reads."""


class Segment(IndexedBatchFile):
    """One segment. The log that contains it calls all methods, in the log's thread.

    Only `sync`, `remove` and the removal of renamed files may run in other threads. See `BatchFile`
    for the invariants.
    """

    def __init__(
        self,
        disk: Disk,
        directory: str,
        base_offset: int,
        index_interval_bytes: int,
        suffix: str = "",
    ) -> None:
        """Describe a segment. `create`, `resume` or `begin_scan` makes it active."""
        super().__init__(disk, directory, base_offset, index_interval_bytes, suffix)
        self._suffix = suffix
        self._first_timestamp_ms: int | None = None
        self.roll_jitter_ms = NO_JITTER
        """The time by which this segment rolls earlier, NO_JITTER before its first append."""
        self._none_has_timestamp = False
        """True if a walk over this sealed segment found no timestamp."""

    # -- life ------------------------------------------------------------------------------------

    @property
    def is_active(self) -> bool:
        """True if the indexes are in memory, so that the segment can be appended to."""
        return self._indexes.in_memory

    def create(self, preallocated_bytes: int = 0) -> None:
        """Make a new segment active and empty. The first append creates the file, with
        `preallocated_bytes` of zeros."""
        self._size = 0
        self._preallocated_bytes = preallocated_bytes
        self._indexes.start()

    def resume(self) -> None:
        """Make an existing segment active, and find its end.

        The walk begins at the last index entry, or at byte 0 if the indexes do not agree with the
        batches. Raise CorruptLog."""
        loaded = self._indexes.in_memory or self._indexes.load()
        if not (loaded and self._indexes_agree()):
            self._indexes.start()
        self._indexes.read_max_timestamp()
        self._none_has_timestamp = False
        self._recent.clear()
        last = self._indexes.last()
        self.next_offset = self.base_offset
        for position, header in self.walk(last[1] if last else 0):
            self._require_rising(position, header)
            if last and position == last[1]:
                self._indexes.note_indexed(header)
            else:
                self._indexes.note(position, header)
            self.next_offset = header.next_offset

    def _require_rising(self, position: int, header: BatchHeader) -> None:
        if header.base_offset < self.next_offset:
            reason = f"the batch has base offset {header.base_offset}"
            raise CorruptLog(self.path, position, self.next_offset, reason)

    def begin_scan(self) -> None:
        """Make an existing segment active without batches, for recovery.

        Recovery then adds each valid batch by `index_batch`, and cuts the rest by
        `truncate_file`."""
        self._indexes.start()
        self._none_has_timestamp = False
        self._recent.clear()
        self.next_offset = self.base_offset

    def index_batch(self, position: int, header: BatchHeader) -> None:
        """Add a batch that recovery has checked to the indexes."""
        assert header.base_offset >= self.next_offset
        self._indexes.note(position, header)
        self.next_offset = header.next_offset

    def seal(self) -> None:
        """Write the indexes to their files, without a sync, and release their memory. Cut
        preallocated bytes off.

        If that raises OSError, the segment stays active."""
        self.trim()
        self._indexes.seal()

    def close(self) -> None:
        """Seal the segment and close its files. `resume` makes it active again."""
        if self._size:  # else there may not even be a file
            self.seal()
        self._indexes.close()
        self.close_file()

    def discard(self) -> None:
        """Close the files and save nothing, because the segment's directory is deleted."""
        self._removed = True
        self._indexes.close()
        self.close_file()

    def remove(self) -> None:
        """Remove all files of the segment, apart from `.damaged` ones. May run in any thread. The
        removal is not synced."""
        self._remove_indexes()
        if self._disk.exists(self.path):
            self._disk.remove(self.path)

    def rename_deleted(self) -> str:
        """Remove the indexes, rename the data file to `.deleted`, and return the new path.

        The rename is not synced. A new segment may take the old names immediately. The caller
        removes the renamed file later, in any thread; after a crash the next start removes it."""
        self._remove_indexes()
        self._disk.rename(self.path, self.path + DELETED_SUFFIX)
        return self.path + DELETED_SUFFIX

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of the indexes and, last, of the data file. An index may have no file."""
        offsets, times = self._indexes.files
        return offsets.path, times.path, self.path

    def rename_files(self, suffix: str) -> None:
        """Rename all files so that `suffix` follows their names, the data file last. Block; no sync
        is done. Open files stay open."""
        for path in self.paths:
            self._disk.rename(path, path.removesuffix(self._suffix) + suffix)
        self.note_renamed(suffix)

    def note_renamed(self, suffix: str) -> None:
        """Note that `suffix` follows the names of all files now."""
        for each in (self, *self._indexes.files):
            each.path = each.path.removesuffix(self._suffix) + suffix
        self._suffix = suffix

    def moved_to(self, directory: str) -> None:
        """Note that all files lie in `directory` now. The next uses open them there."""
        super().moved_to(directory)
        for each in self._indexes.files:
            each.moved_to(directory)

    def _remove_indexes(self) -> None:
        """Remove the indexes before the `.log` file, because a `.log` without indexes is whole."""
        self._removed = True
        self._indexes.remove()
        self.close_file()
        transactions = segment_file(self._directory, self.base_offset, TRANSACTION_INDEX_SUFFIX)
        if self._disk.exists(transactions):
            self._disk.remove(transactions)

    # -- append, truncate ------------------------------------------------------------------------

    def fits_indexes(self, last_offset: int) -> bool:
        """Return True if an index entry of this segment can hold `last_offset`."""
        return last_offset - self.base_offset <= MAX_RELATIVE_OFFSET

    def indexes_are_full(self, max_bytes: int) -> bool:
        """Return True if an index of this active segment has no room for one more entry in
        `max_bytes`."""
        return self._indexes.needed_bytes > max_bytes

    def append(self, data: Buffer, placed: Placed) -> None:
        """Append batches, which `placed` lists, to an active segment.

        After an OSError the segment is unchanged."""
        assert placed[0][1].base_offset >= self.next_offset
        start = self.write_at_end(data)
        self._remember(placed[0][1].base_offset, start)
        for position, header in placed:
            self._indexes.note(start + position, header)
        self.next_offset = placed[-1][1].next_offset

    def truncate_to(self, offset: int) -> None:
        """Remove the batch that holds `offset` and everything after it; make the segment active.

        Raise CorruptLog if the batches before it do not end at or below `offset`."""
        position = self.position_of(offset)
        self.truncate_file(position)
        self._first_timestamp_ms = None
        if self._indexes.in_memory or self._indexes.load():
            self._indexes.truncate_to(position, offset)
        self.resume()
        if self.next_offset > offset:
            reason = f"the batch before it ends at offset {self.next_offset}"
            consequence = "All batches after it were removed"
            raise CorruptLog(self.path, position, offset, reason, consequence=consequence)

    # -- timestamps ------------------------------------------------------------------------------

    @property
    def first_timestamp_ms(self) -> int:
        """The largest timestamp of the first batch, or NO_TIMESTAMP if there is none.

        The age of a segment counts from it."""
        if self._first_timestamp_ms is None:
            if not self.size:
                return NO_TIMESTAMP
            self._first_timestamp_ms = self.header_at(0).max_timestamp_ms
        return self._first_timestamp_ms

    @property
    def max_timestamp_ms(self) -> int:
        """The largest timestamp of all records, or NO_TIMESTAMP if there is none.

        The first call for a sealed segment may walk over it; see `learn_max_timestamp`."""
        self._know_max_timestamp()
        return self._indexes.max_timestamp_ms

    @property
    def max_timestamp_offset(self) -> int:
        """The last offset of the first batch with the largest timestamp."""
        self._know_max_timestamp()
        return self._indexes.max_timestamp_offset

    def offset_before_time(self, timestamp_ms: int) -> int:
        """Return an offset from which to search for the first record as late as `timestamp_ms`.

        No batch that ends below that offset has such a record. The batch that holds the offset may
        have one at a lower offset. Raise CorruptLog."""
        entry = self._indexes.by_time(timestamp_ms)
        if entry is not None and not self._time_agrees(*entry):
            self.rebuild_indexes()
            entry = self._indexes.by_time(timestamp_ms)
        return entry[1] if entry else self.base_offset

    def learn_max_timestamp(self) -> IncrementalWork[None]:
        """Return the steps after which `max_timestamp_ms` does not walk over the segment.

        The steps end early if the segment is removed meanwhile. Raise CorruptLog."""
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
        """True if the largest timestamp is in memory or in the time index.

        An active segment notes every batch. A sealed segment has an entry in its time index, unless
        none of its batches has a timestamp; only a walk over the segment shows that."""
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

    def _indexes_agree(self) -> bool:
        """Return True if the last entries of both indexes agree with the batches they name, and
        the time index covers the end of the segment.

        Indexes are never synced, so a power cut may leave the beginning of a file, whose last
        entry is right. A lookup would then skip the segment, and retention would remove it early.
        A cut is not found if a batch in the middle has the latest timestamp of the segment."""
        last = self._indexes.last()
        if not self._indexes.whole or (last is not None and not self._agrees(last)):
            return False
        self._indexes.read_max_timestamp()
        if self._indexes.max_timestamp_ms == NO_TIMESTAMP:  # the whole time index may be cut off
            return last is None or self.first_timestamp_ms == NO_TIMESTAMP
        if self._end_is_later(last[1] if last else 0):
            return False
        return self._time_agrees(self._indexes.max_timestamp_ms, self._indexes.max_timestamp_offset)

    def _end_is_later(self, position: int) -> bool:
        """Return True if a batch from `position` on has a later timestamp than the time index. The
        walk ends at a damaged header, which readers report."""
        try:
            batches = (header for _, header in self.walk(position))
            return any(each.max_timestamp_ms > self._indexes.max_timestamp_ms for each in batches)
        except CorruptLog:
            return False

    def _time_agrees(self, timestamp_ms: int, offset: int) -> bool:
        """Return True if the batch that holds `offset` has this largest timestamp."""
        for _, header in self.walk(self._near(offset)):
            if header.next_offset > offset:
                return header.base_offset <= offset and header.max_timestamp_ms == timestamp_ms
        return False
