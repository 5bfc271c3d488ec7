"""The replicated log of one partition or of the metadata, stored in segments on a Disk.

A batch arrives with its final offsets and leader epochs. An append reads the headers and checks the
CRCs; the records stay opaque.

Other modules hold the parts: `loading.py` opens a log and `recovery.py` checks it after a crash,
`segment_list.py` holds the segments, `flush.py` the durable part, `epochs.py` the leader epochs,
`file_removal.py` removes the files that leave the log. The owner of a log decides when to flush it,
when to apply retention and when to delete it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Unpack

from quorate.quorum.histogram import Histogram
from quorate.quorum.incremental_work import IncrementalWork, finished
from quorate.quorum.log.append_check import require_continuation
from quorate.quorum.log.batches.batch import Placed, batches
from quorate.quorum.log.checking.integrity import RecentlyAppended
from quorate.quorum.log.files.errors import OffsetOutOfRange
from quorate.quorum.log.files.settings import NEVER, LogSettings
from quorate.quorum.log.flush import Flush, FlushState
from quorate.quorum.log.opening import loading
from quorate.quorum.log.opening.loading import OpenOptions
from quorate.quorum.log.replacing_log import ReplacingLog
from quorate.quorum.log.segments.epochs import NO_EPOCH, EpochCache
from quorate.quorum.log.segments.retention import expired_segments
from quorate.quorum.log.segments.rolling import must_roll, roll_jitter_ms
from quorate.quorum.log.segments.segment import Segment
from quorate.quorum.log.segments.segment_list import SegmentList
from quorate.quorum.seams import Buffer, Disk


class Log(ReplacingLog):
    """One replicated log: append, read, truncate, flush and shorten it.

    Attributes: `start_offset` is the first offset that may be read, and `end_offset` the offset of
    the next record. `epochs` has the start offset of each leader epoch, and `recovery` reports the
    bytes that the opening of the log removed. The owner sets `deleted` when it deletes the log, and
    may set the callbacks `before_truncation` and `run_reset`.

    Invariants: batches are contiguous from the first segment's base offset to `end_offset`;
    `start_offset` <= `end_offset` and `flushed_offset` <= `end_offset`; leader epochs never
    decrease; the last segment, the active one, is the only one that is appended to.

    Durability: `append` returns when the bytes are in the page cache. A flush (`prepare_flush`,
    `Flush.run`, `complete_flush`) makes all appended bytes durable, and writes the leader epochs if
    they changed. Indexes are never synced, because they can be rebuilt from the batches.

    Threads: one thread calls all methods, usually the event loop's. A log may be opened in another
    thread. `Flush.run`, and the file operations that `reset_to` passes to `run_reset`, may run in
    another thread. A read blocks while the disk fetches bytes that are not in the page cache. The
    other methods that wait for the disk say so.

    Errors: methods raise the errors of `errors.py`. Disk errors stay OSErrors. After an OSError of
    a flush the owner must stop using the log, because a second fsync may succeed without the bytes
    (R45, tests/scenarios).
    """

    def __init__(
        self, disk: Disk, directory: str, settings: LogSettings, loaded: loading.LoadedLog
    ) -> None:
        """Build a log from its loaded parts. Call `open` or `open_in_steps` instead."""
        self.directory = directory
        self.settings = settings
        self.epochs = EpochCache(loaded.epochs)
        self.epochs.changed = loaded.epochs_changed
        self.start_offset = loaded.start_offset
        """The first offset that may be read. The first segment may begin below it."""
        self.end_offset = loaded.segments[-1].next_offset
        """The offset of the next record."""
        self.recovery = loaded.report
        self.disk = disk
        self.before_truncation: Callable[[int], None] = lambda offset: None
        """Called with the new end before bytes are removed. The owner lowers its recovery point."""
        self.run_reset: Callable[[Callable[[], None]], None] = lambda work: work()
        """Runs the file operations of `reset_to`: immediately, or in the disk's thread if the owner
        appends nothing before they are done."""
        self.deleted = False
        """Set by the owner when it deletes the log. Its files may then be missing."""
        self.gaps = loaded.gaps
        self.flush_times = Histogram()
        """The flushes of `GroupCommit`, from the submission to the end."""
        self._swap = None
        self.jitter_seed: Callable[[], str] = lambda: ""
        """Returns a random text of this process. The owner sets it."""
        self._segments = SegmentList(disk, directory, loaded.segments, loaded.wall_ms)
        self._flushes = FlushState(
            loaded.flushed_offset, loaded.unsynced_directories, loaded.marker
        )
        self._unsynced = self._flushes.unsynced
        assert 0 <= loaded.flushed_offset <= self.end_offset
        self._recent = RecentlyAppended(self.end_offset)
        for segment in loaded.unsynced:
            self._unsynced.add_segment(segment)
        if loaded.unsynced and settings.flushed_is_acknowledged:
            self.flush()  # bytes that only a page cache holds must not be acknowledged

    @classmethod
    def open(
        cls, disk: Disk, directory: str, settings: LogSettings, **options: Unpack[OpenOptions]
    ) -> Log:
        """Open the log in `directory`. Block; see `open_in_steps`."""
        return finished(cls.open_in_steps(disk, directory, settings, **options))

    @classmethod
    def open_in_steps(
        cls, disk: Disk, directory: str, settings: LogSettings, **options: Unpack[OpenOptions]
    ) -> IncrementalWork[Log]:
        """Return the steps that open the log in `directory`, which is created if it is missing.

        After a clean shutdown (`clean`) only batch headers near the end are read, or all headers if
        the epoch checkpoint is unusable. Otherwise recovery checks all batches above the trusted
        offset: the recovery point or, in the metadata log, the flushed marker if it is higher.
        Recovery cuts off a torn end, and in a partition everything from the first damage on. A
        metadata log is then flushed. If the log ends below `start_offset` after a crash, it is
        opened empty at `start_offset`.

        Raise CorruptLog if the log lost bytes that may have been acknowledged, or OSError.
        `loading.OpenOptions` defines all options."""
        loaded = yield from loading.load(disk, directory, settings, **options)
        log = cls(disk, directory, settings, loaded)
        if log.start_offset > log.end_offset:  # a crash took records that were deleted already
            log.reset_to(log.start_offset)
        return log

    # -- append ----------------------------------------------------------------------------------

    def append(
        self,
        data: Buffer,
        *,
        wall_ms: int,
        placed: Placed | None = None,
        gaps: bool = False,
    ) -> None:
        """Append one or more whole batches at the log end. On return they are in the page cache.

        The record timestamps decide if the active segment is old enough to be replaced by a new
        one. `wall_ms` decides it if the segment's first batch has no timestamp. A caller that has
        checked the CRCs passes the position and the header of each batch as `placed`. Empty `data`
        changes nothing.

        A follower sets `gaps`, because its leader may have compacted the log: offsets may then be
        missing before a batch. The first time, block for the sync of a directory
        (`offset_gaps.py`).

        Raise CorruptBatch if `data` is damaged, and BrokenChain if its offsets or leader epochs do
        not continue the log. After any error, including OSError, the log holds the same batches as
        before."""
        if placed is None:
            placed = list(batches(data))
        if not placed:
            return
        if require_continuation(
            self.directory, self.end_offset, self.epochs.latest, placed, gaps=gaps
        ):
            self._allow_gaps()
        segment = self._segments.active
        last_offset = placed[-1][1].last_offset
        active_ms = wall_ms - self._segments.active_since_ms
        if segment.roll_jitter_ms < 0:
            segment.roll_jitter_ms = roll_jitter_ms(
                self.settings, lambda: f"{self.jitter_seed()} {segment.path}"
            )
        if segment.size and must_roll(segment, self.settings, placed, active_ms):
            segment = self._roll(wall_ms)
        if not segment.size:
            self._unsynced.add_directory(self.directory)
        segment.append(data, placed)
        if not segment.dirty:
            self._unsynced.add_segment(segment)
        if placed[-1][1].leader_epoch > self.epochs.latest:
            for _, header in placed:
                if header.leader_epoch > self.epochs.latest:
                    self.epochs.assign(header.leader_epoch, header.base_offset)
        self._recent.appended(self.end_offset, len(data))
        self.end_offset = last_offset + 1
        assert segment.next_offset == self.end_offset

    def _roll(self, wall_ms: int) -> Segment:
        """Seal the active segment, and return a new one that begins at the log end."""
        sealed = self._segments.active
        segment = self._segments.roll(self.end_offset, wall_ms, self.settings)
        if sealed.trimmed and not sealed.dirty:  # zeros must not come back behind its batches
            self._unsynced.add_segment(sealed)
        return segment

    def assign_epoch(self, epoch: int) -> None:
        """Record that this replica leads `epoch`, whose first offset is the log end.

        Entries that contradict this are removed. The next flush writes the entries to the disk."""
        self.epochs.assign(epoch, self.end_offset)

    # -- truncate --------------------------------------------------------------------------------

    def truncate_to(self, offset: int) -> None:
        """Remove the batch that holds `offset` and everything after it.

        The log then ends after the last batch that stays, and a flush in flight is void. If
        `settings.flushed_is_acknowledged` is set, the truncation is on disk on return. Otherwise
        the next flush makes it durable, or the first flush after an append if the log is empty now.
        The log removes segments newest first, so that a crash leaves a prefix of the log. Block:
        usually less than a millisecond, half a second where half a gigabyte is freed.

        If the log start is within the batch that holds `offset`, or in a gap before it, the log is
        empty afterwards, and the log start stays. If `offset` is the log end or above it, only
        leader epochs that start there are removed.
        Raise OffsetOutOfRange if `offset` lies below the log start. Raise CorruptLog if an earlier
        batch reaches beyond `offset`; the batches after it are removed then."""
        if offset < self.start_offset:
            raise OffsetOutOfRange(self.directory, offset, self.start_offset, self.end_offset)
        self.epochs.truncate_to(offset)
        if offset >= self.end_offset:
            return
        self.settle_swap()
        end_offset = self._segments.end_below(offset)
        if end_offset < self.start_offset:
            self.reset_to(self.start_offset, self.last_epoch)
            return
        offset = self._segments.first_removed(offset)
        self.epochs.truncate_to(end_offset)
        self._before_truncation(end_offset)
        for segment in self._segments.pop_from(offset):
            self._drop(segment)
        active = self._segments.active
        if active.size:
            active.truncate_to(offset)
        self.end_offset = active.next_offset
        self._after_truncation()
        assert self.end_offset <= offset

    def reset_to(self, offset: int, epoch: int = NO_EPOCH) -> None:
        """Remove all batches and continue with an empty log at `offset`.

        The owner resets the log when a snapshot replaces it, for example. `epoch` is the leader
        epoch of the last record before `offset`, if it is known. The offsets change immediately,
        and a flush in flight becomes void. `run_reset` removes the files, and syncs that if
        `settings.flushed_is_acknowledged` is set. By default it blocks until they are removed."""
        self.settle_swap()
        self._lower_flushed_offset(0)
        old = self._segments.replace_all(offset, self.settings)
        for segment in old:
            self._detach(segment)
        active = self._segments.active
        self.epochs.clear()
        self.start_offset = self.end_offset = offset
        assert len(self._segments) == 1 and active.next_offset == offset
        if epoch != NO_EPOCH:
            self.epochs.assign(epoch, offset)

        def reset_files() -> None:
            self._flushes.lower_marker_to(0)
            for segment in reversed(old):  # newest first, so that a crash leaves a prefix
                segment.remove()
            active.create_file()  # only its name tells the next start where the log begins
            self._sync_truncation(active)

        self._unsynced.add_directory(self.directory)
        self.run_reset(reset_files)

    def _before_truncation(self, offset: int) -> None:
        self._lower_flushed_offset(offset)
        self._flushes.lower_marker_to(self.flushed_offset)

    def _lower_flushed_offset(self, offset: int) -> None:
        self._flushes.lower_to(offset)
        self.before_truncation(offset)

    def _after_truncation(self) -> None:
        """Sync the truncation if flushed means acknowledged: removed bytes must not come back."""
        self._unsynced.add_directory(self.directory)
        self._unsynced.add_segment(self._segments.active)
        self._sync_truncation(self._segments.active)

    def _sync_truncation(self, active: Segment) -> None:
        if self.settings.flushed_is_acknowledged:
            active.sync()
            self.disk.sync_dir(self.directory)

    def _detach(self, segment: Segment) -> None:
        """Take a segment out of the log's books. Its files are removed later, or by the caller."""
        self._unsynced.remove_segment(segment)
        segment.mark_removed()

    def _drop(self, segment: Segment) -> None:
        self._detach(segment)
        segment.remove()

    # -- flush -----------------------------------------------------------------------------------

    @property
    def flushed_offset(self) -> int:
        """Everything below this offset is on disk. More may be, because only a completed flush or a
        start raises it."""
        return self._flushes.flushed_offset

    @property
    def must_flush(self) -> bool:
        """Return True if the log has as many unflushed records as flush.messages allows. The owner
        flushes it then, before it acknowledges the records."""
        limit = self.settings.flush_messages
        return limit != NEVER and self.end_offset - self.flushed_offset >= limit

    @property
    def generation(self) -> int:
        """Number of truncations and resets since the log was opened. A flush that was prepared
        before the last one is void (R22, tests/scenarios)."""
        return self._flushes.generation

    def prepare_flush(self) -> Flush:
        """Return the flush of everything that was appended so far.

        The call does not wait for the disk. The caller runs the flush in any thread (`Flush.run`)
        and passes it to `complete_flush`. Only one flush may be in flight. If the flush fails, the
        owner does not complete it and must stop using the log (R45, see the class)."""
        return self._flushes.prepare(self, self.end_offset, self.epochs)

    def complete_flush(self, flush: Flush) -> bool:
        """Raise `flushed_offset` after `flush.run` has returned without an error.

        If the log was truncated meanwhile, return False and leave the offset as it is. Other
        records may have taken the place of those that the flush covered, so another flush is needed
        (R22, tests/scenarios). The `flushed_offset` of a deleted log is not raised either, but the
        result is True."""
        assert flush.generation != self.generation or flush.end_offset <= self.end_offset
        return self._flushes.complete(flush)

    def flush(self) -> None:
        """Flush everything that was appended so far. Block until it is on disk.

        Only starts, clean stops and tools use it. No other flush may be in flight."""
        flush = self.prepare_flush()
        flush.run()
        self.complete_flush(flush)

    # -- retention and end -----------------------------------------------------------------------

    def advance_start(self, offset: int) -> None:
        """Raise the log start offset to `offset`; a lower one changes nothing.

        The change is only in memory. `take_expired` removes the segments below the offset later.
        Raise OffsetOutOfRange if `offset` lies above the log end."""
        if offset > self.end_offset:
            raise OffsetOutOfRange(self.directory, offset, self.start_offset, self.end_offset)
        if offset > self.start_offset:
            self.start_offset = offset
            self.epochs.advance_start(offset)

    def take_expired(self, *, high_watermark: int, wall_ms: int) -> list[Segment]:
        """Apply retention: remove expired segments from the log and return them, oldest first.

        A segment that reaches above `high_watermark` never expires (`retention.py` has the rules).
        The log start rises to the first segment that stays. The caller removes the files of the
        returned segments (`file_removal.py`). If all segments are expired, an empty active segment
        takes their place."""
        segments = self._segments
        count = expired_segments(
            segments.all,
            self.settings,
            start_offset=self.start_offset,
            high_watermark=high_watermark,
            wall_ms=wall_ms,
        )
        if count:
            self.settle_swap()
        if count == len(segments):
            self._roll(wall_ms).create_file()
            self._unsynced.add_directory(self.directory)
        expired = segments.take_first(count)
        for segment in expired:
            self._detach(segment)
        if count:
            self.advance_start(max(self.start_offset, segments.first.base_offset))
        assert segments.first.base_offset <= self.start_offset <= self.end_offset
        return expired

    def close(self) -> None:
        """Close the log cleanly: flush it, save indexes and epochs, close all files. Block.

        If a flush is in flight or has failed, close the files without another flush. The caller
        must then not record a clean shutdown."""
        self.settle_swap()
        if not self._flushes.in_flight:
            active = self._segments.active
            active.trim()
            if active.trimmed:
                active.sync()
            self.flush()
        for segment in self._segments:
            segment.close()
        self._flushes.close()

    def discard(self) -> None:
        """Close the files of a deleted log, so that the OS releases their disk space."""
        for segment in self._segments:
            segment.discard()
        self._flushes.close()
