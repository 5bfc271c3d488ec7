"""The reading half of a log: reads of batches, lookups by time, checks of what is stored."""

from __future__ import annotations

from collections.abc import Iterator

from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.log.batches.batch import BatchHeader
from quorate.quorum.log.checking.integrity import EpochOf, RecentlyAppended, check_all, check_read
from quorate.quorum.log.files.errors import CorruptLog, OffsetOutOfRange
from quorate.quorum.log.segments.epochs import EpochCache
from quorate.quorum.log.segments.segment import Segment
from quorate.quorum.log.segments.segment_list import SegmentList
from quorate.quorum.log.segments.timestamp_lookup import (
    TimestampOffset,
    look_up_timestamp,
    run_lookup,
)
from quorate.quorum.seams import Disk


class LogReader:
    """The methods of a log that change no batch. `Log` inherits them and sets the attributes.

    One thread calls them, the one that calls the methods of `Log`. Batches that were appended
    recently come from the page cache and were checked by the append. `read` checks all others,
    because a start reads only the end of a log (see `integrity.py`). A method that finds a wrong
    index rebuilds it. All methods that read the disk raise CorruptLog for damage and OSError.
    """

    directory: str
    disk: Disk
    epochs: EpochCache
    start_offset: int
    """The first offset that may be read. The first segment may begin below it."""
    end_offset: int
    """The offset of the next record."""
    deleted: bool
    gaps: bool
    """True if offsets may be missing between batches (`offset_gaps.py`)."""
    _segments: SegmentList
    _recent: RecentlyAppended

    @property
    def generation(self) -> int:
        """Number of truncations and resets."""
        raise NotImplementedError

    @property
    def last_epoch(self) -> int:
        """The highest leader epoch of the log, even one without records; -1 if there is none."""
        return self.epochs.latest

    @property
    def size_bytes(self) -> int:
        """Bytes of all batches in all segments."""
        return self._segments.size_bytes

    @property
    def max_timestamp_ms(self) -> int:
        """Largest timestamp of all records, or -1 if no record has one.

        The first call may read whole segments; call `learn_max_timestamps` before."""
        return self._segments.max_timestamp_ms

    def read(self, offset: int, max_bytes: int, *, end: int | None = None) -> bytes:
        """Return whole batches of one segment, beginning with the batch that holds `offset`.
        If that offset is missing in a compacted log, begin with the next batch.

        All of them lie below `end`, by default the log end. The first one is returned even if it
        exceeds `max_bytes`; the result is empty if it does not lie below `end`. Raise
        OffsetOutOfRange below the log start and above the log end. Raise CorruptLog if the disk
        does not return the bytes that were appended."""
        if not self.start_offset <= offset <= self.end_offset:
            raise OffsetOutOfRange(self.directory, offset, self.start_offset, self.end_offset)
        if end is None or end > self.end_offset:
            end = self.end_offset
        if offset >= end:
            return b""
        active = self._segments.active
        segment = active if offset >= active.base_offset else self.segment_of(offset)
        data = segment.read(offset, max_bytes, end)
        if offset < self._recent.offset:
            check_read(segment, data, offset, self._epoch_of, gaps=self.gaps)
        return data

    def control_batches(self, offset: int) -> Iterator[bytes]:
        """Yield the control batches from `offset` on, the base offset of a batch. Block.

        Of other batches only the headers are read. Raise CorruptLog at a damaged control batch or
        header."""
        for segment in self._segments:
            if segment.next_offset <= offset:
                continue
            for position, header in segment.walk(segment.position_of(offset)):
                if header.is_control:
                    data = segment.file.pread(header.size_bytes, position)
                    check_read(segment, data, header.base_offset, self._epoch_of)
                    yield data

    def bytes_below(self, offset: int) -> int:
        """Return the size of the log below `offset`, a batch's base offset or the log end."""
        return self._segments.bytes_below(offset)

    def segment_of(self, offset: int) -> Segment:
        """Return the segment that holds `offset`, which must not lie below the first segment. It is
        the active one if `offset` is the log end."""
        return self._segments.segment_of(offset)

    def learn_max_timestamps(self) -> IncrementalWork[None]:
        """Return the steps after which `max_timestamp_ms` does not read whole segments."""
        for segment in self._segments:
            yield from segment.learn_max_timestamp()

    def offset_for_timestamp(self, timestamp_ms: int) -> TimestampOffset | None:
        """Return the first record that is not older than `timestamp_ms`, or None if there is none.

        Block; `timestamp_lookup.py` has the same lookup in steps. Raise CorruptLog or
        CorruptBatch."""
        return run_lookup(look_up_timestamp(self, timestamp_ms))

    def check(self, path: str = "") -> None:
        """Read all batches, or those of the segment file `path`. Block.

        A path that is no segment of this log checks nothing. Raise CorruptLog at the first damaged
        batch."""
        wanted = (each for each in self._segments if path in ("", each.path))
        check_all(wanted, self._epoch_of, gaps=self.gaps)

    def first_damage(self, path: str = "") -> CorruptLog | None:
        """Return the error that `check` raises, or None if it raises none. Block."""
        try:
            self.check(path)
        except CorruptLog as damage:
            return damage
        return None

    def epochs_now(self) -> EpochOf:
        """Return a function that returns the present leader epoch of a batch, for any thread. Later
        changes of the log do not change its results."""
        epochs, start_offset = EpochCache(self.epochs.entries), self.start_offset

        return lambda header: expected_epoch(epochs, start_offset, header)

    def _epoch_of(self, header: BatchHeader) -> int:
        """Return the epoch that the epoch cache has for a batch; below the start it has none."""
        return expected_epoch(self.epochs, self.start_offset, header)


def expected_epoch(epochs: EpochCache, start_offset: int, header: BatchHeader) -> int:
    """Return the epoch that a batch must have, which is its own one if nothing vouches for it.

    Nothing vouches for a batch below the log start. Nothing vouches for one below the first entry
    of the cache either, if its epoch is not later than that entry's. The head was deleted then, and
    the process was killed before it wrote the new log start to its checkpoint. The records are
    there again, as in Kafka."""
    if header.next_offset <= start_offset:
        return header.leader_epoch
    offset = max(header.base_offset, start_offset)
    first = epochs.first
    if first is not None and offset < first.offset and header.leader_epoch <= first.epoch:
        return header.leader_epoch
    return epochs.epoch_at(offset)
