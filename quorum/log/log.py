"""The replicated log of one partition, or of the metadata: batches by offset, on a Disk.

Offsets are contiguous from `start_offset` to `end_offset`; leader epochs never decrease. Batches
come with their final offsets and epochs and stay opaque: an append reads their headers and checks
their CRCs.

Durability: `append` returns when the bytes are in the page cache; `prepare_flush` says what to
sync, off the loop, to make all of it durable. Anything that can be derived from the batches
(indexes, epochs) is not synced for its own sake.

One owner calls everything, from one thread, but for `Flush.run`; it may be opened in another. What
is on disk then is the business of `recovery.py`; when to flush, retain or delete is the owner's,
and what becomes of the files then is `file_removal.py`'s.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Unpack

from quorate.quorum.log import checkpoints, recovery
from quorate.quorum.log.batch import BatchHeader, batches
from quorate.quorum.log.epochs import NO_EPOCH, EpochCache
from quorate.quorum.log.errors import BrokenChain, CorruptLog, OffsetOutOfRange
from quorate.quorum.log.flush import Flush, Unsynced
from quorate.quorum.log.integrity import RecentlyAppended, check_all, check_read
from quorate.quorum.log.retention import expired_segments
from quorate.quorum.log.rolling import must_roll
from quorate.quorum.log.segment import MAX_RELATIVE_OFFSET, Segment
from quorate.quorum.log.settings import LogSettings
from quorate.quorum.log.timestamp_lookup import TimestampOffset, look_up_timestamp, run_lookup
from quorate.quorum.seams import Buffer, Disk
from quorate.quorum.steps import Steps, finished

_base_offset = attrgetter("base_offset")


class Log:
    def __init__(
        self, disk: Disk, directory: str, settings: LogSettings, loaded: recovery.LoadedLog
    ) -> None:
        self.directory = directory
        self.settings = settings
        self.epochs = EpochCache(lambda: self.end_offset, loaded.epochs)
        self.epochs.changed = loaded.epochs_changed
        self.start_offset = loaded.start_offset
        self.end_offset = loaded.segments[-1].next_offset
        self.flushed_offset = loaded.flushed_offset
        self.generation = 0
        """How often the log was truncated: what a flush from before proves is nothing (R22)."""
        self.recovery = loaded.report
        self.disk = disk
        self.before_truncation: Callable[[int], None] = lambda offset: None
        self.carry_out_reset: Callable[[Callable[[], None]], None] = lambda work: work()
        """At once; or in the disk's thread, by an owner who appends nothing before it is done."""
        self.deleted = False
        self._segments = loaded.segments
        self._active = loaded.segments[-1]
        self._active_since_ms = loaded.wall_ms
        self._unsynced = Unsynced(directories=loaded.unsynced_directories)
        self._flushing = False
        self._recent = RecentlyAppended(self.end_offset)
        self._marker = loaded.marker
        for segment in loaded.unsynced:
            self._unsynced.wrote(segment)
        if loaded.unsynced and settings.flushed_is_acknowledged:
            self.flush()  # what survived in a page cache alone must not be acknowledged

    @classmethod
    def open(
        cls,
        disk: Disk,
        directory: str,
        settings: LogSettings,
        **known: Unpack[recovery.OpenOptions],
    ) -> Log:
        """Blocks until it is open; see `opening`."""
        return finished(cls.opening(disk, directory, settings, **known))

    @classmethod
    def opening(
        cls,
        disk: Disk,
        directory: str,
        settings: LogSettings,
        **known: Unpack[recovery.OpenOptions],
    ) -> Steps[Log]:
        """The directory is made when it is missing. `clean`: the log was closed in order, so its
        batches are not read; otherwise everything from `recovery_point` on is checked and a torn
        tail is cut. Raises CorruptLog. `set_aside`: what is cut is kept beside the log.
        `latest_unsaved_epoch`: what was not synced is of no later one, but for saved epochs."""
        loaded = yield from recovery.load(disk, directory, settings, **known)
        log = cls(disk, directory, settings, loaded)
        if log.start_offset > log.end_offset:  # a crash took records that were deleted already
            log.reset_to(log.start_offset)
        return log

    # -- append ----------------------------------------------------------------------------------

    def append(self, data: Buffer, *, wall_ms: int, checked: BatchHeader | None = None) -> None:
        """Append one or more whole batches that continue the log. Raise CorruptBatch or BrokenChain
        if they do not; then, and after an OSError, the log is as before. If the caller has checked
        the CRC of the only batch, it passes the header that the batch has now."""
        placed = list(batches(data)) if checked is None else [(0, checked)]
        if not placed:
            return
        self._check_chain(placed)
        segment = self._active
        last_offset = placed[-1][1].last_offset
        active_ms = wall_ms - self._active_since_ms
        if segment.size and must_roll(segment, self.settings, placed, active_ms):
            segment = self._roll(wall_ms)
        if not segment.size:
            self._unsynced.named(self.directory)
        segment.append(data, placed)
        if not segment.dirty:
            self._unsynced.wrote(segment)
        if placed[-1][1].leader_epoch > self.epochs.latest:
            for _, header in placed:
                if header.leader_epoch > self.epochs.latest:
                    self.epochs.assign(header.leader_epoch, header.base_offset)
        self._recent.appended(self.end_offset, len(data))
        self.end_offset = last_offset + 1

    def assign_epoch(self, epoch: int) -> None:
        """This replica leads from here on: `epoch` starts at the log end."""
        self.epochs.assign(epoch, self.end_offset)

    def _check_chain(self, placed: list[tuple[int, BatchHeader]]) -> None:
        expected, epoch = self.end_offset, self.epochs.latest
        for _, header in placed:
            if header.base_offset != expected:
                raise BrokenChain(
                    f"{self.directory}: batch at offset {header.base_offset} cannot follow the log"
                    f" end {expected}"
                )
            if header.leader_epoch < epoch:
                raise BrokenChain(
                    f"{self.directory}: batch at offset {expected} has leader epoch"
                    f" {header.leader_epoch}, the log already {epoch}"
                )
            expected, epoch = header.next_offset, header.leader_epoch
        if expected - 1 - placed[0][1].base_offset > MAX_RELATIVE_OFFSET:
            raise BrokenChain(
                f"{self.directory}: offsets {self.end_offset} to {expected - 1} are more than the"
                " index of one segment can say"
            )

    def _roll(self, wall_ms: int) -> Segment:
        self._active.seal()
        self._active = Segment(
            self.disk, self.directory, self.end_offset, self.settings.index_interval_bytes
        )
        self._active.create()
        self._segments.append(self._active)
        self._active_since_ms = wall_ms
        return self._active

    # -- read ------------------------------------------------------------------------------------

    @property
    def last_epoch(self) -> int:
        """The latest leader epoch, -1 before there was one."""
        return self.epochs.latest

    @property
    def size_bytes(self) -> int:
        return sum(segment.size for segment in self._segments)

    def control_batches(self, offset: int) -> Iterator[bytes]:
        """Those from `offset` on, a batch's start. Blocks. CorruptLog for a damaged one."""
        for segment in self._segments:
            if segment.next_offset <= offset:
                continue
            for position, header in segment.walk(segment.position_of(offset)):
                if header.is_control:
                    data = segment.file.pread(header.size_bytes, position)
                    check_read(segment, data, header.base_offset, self._epoch_of)
                    yield data

    def bytes_below(self, offset: int) -> int:
        """How much of the log lies below `offset`, which is a batch's start or the log's end."""
        before = sum(each.size for each in self._segments if each.next_offset <= offset)
        holding = self.segment_of(offset)
        return before + (holding.position_of(offset) if holding.next_offset > offset else 0)

    def read(self, offset: int, max_bytes: int, *, end: int | None = None) -> bytes:
        """Whole batches, from the one that holds `offset`, of one segment; below `end`; at least
        one even when it exceeds `max_bytes`. Empty at the end. CorruptLog when the disk does not
        give back what was appended."""
        if not self.start_offset <= offset <= self.end_offset:
            raise OffsetOutOfRange(self.directory, offset, self.start_offset, self.end_offset)
        if end is None or end > self.end_offset:
            end = self.end_offset
        if offset >= end:
            return b""
        at_end = offset >= self._active.base_offset
        segment = self._active if at_end else self.segment_of(offset)
        data = segment.read(offset, max_bytes, end)
        if offset < self._recent.offset:
            check_read(segment, data, offset, self._epoch_of)
        return data

    def learn_max_timestamps(self) -> Steps[None]:
        """See `Segment.learn_max_timestamp`; so that `max_timestamp_ms` does not block."""
        for segment in tuple(self._segments):
            yield from segment.learn_max_timestamp()

    @property
    def max_timestamp_ms(self) -> int:
        """Of all records; -1 when there are none."""
        return max(segment.max_timestamp_ms for segment in self._segments)

    def offset_for_timestamp(self, timestamp_ms: int) -> TimestampOffset | None:
        """Return the first record that is not before `timestamp_ms`. Blocks."""
        return run_lookup(look_up_timestamp(self, timestamp_ms))

    def segment_of(self, offset: int) -> Segment:
        """Return the segment that holds `offset`, which is not below the first one's base."""
        return self._segments[bisect_right(self._segments, offset, key=_base_offset) - 1]

    # -- truncate --------------------------------------------------------------------------------

    def truncate_to(self, offset: int) -> None:
        """Drop everything from `offset` on, the batch that holds it included, newest first, so that
        a crash leaves a prefix. An owner's recovery point is lowered in `before_truncation`.

        Blocks: below a millisecond usually, half a second where half a gigabyte is freed."""
        self.epochs.truncate_to(offset)
        if offset >= self.end_offset:
            return
        if offset < self.start_offset:
            raise OffsetOutOfRange(self.directory, offset, self.start_offset, self.end_offset)
        holding = self.segment_of(offset)
        offset = holding.header_at(holding.position_of(offset)).base_offset
        self._before_truncation(offset)
        while len(self._segments) > 1 and self._segments[-1].base_offset >= offset:
            self._drop(self._segments.pop())
        self._active = self._segments[-1]
        if self._active.size:
            self._active.truncate_to(offset)
        self.end_offset = self._active.next_offset
        self._after_truncation()

    def reset_to(self, offset: int, epoch: int = NO_EPOCH) -> None:
        """Drop everything and go on, empty, from `offset` (a snapshot replaces the log below
        it, and ended in `epoch`)."""
        self._unprove(0)
        gone = self._segments
        for segment in gone:
            self._leave(segment)
        active = Segment(self.disk, self.directory, offset, self.settings.index_interval_bytes)
        active.create()
        self._segments, self._active = [active], active
        self.epochs.clear()
        self.start_offset = self.end_offset = offset
        if epoch != NO_EPOCH:
            self.epochs.assign(epoch, offset)

        def carry_out() -> None:
            self._lower_marker(0)
            for segment in reversed(gone):  # newest first, so that a crash leaves a prefix
                segment.remove()
            active.create_file()  # it alone says where the log starts
            self._sync_truncation(active)

        self._unsynced.named(self.directory)
        self.carry_out_reset(carry_out)

    def _before_truncation(self, offset: int) -> None:
        self._unprove(offset)
        self._lower_marker(self.flushed_offset)

    def _unprove(self, offset: int) -> None:
        self.generation += 1
        self.flushed_offset = min(self.flushed_offset, offset)
        self.before_truncation(offset)

    def _lower_marker(self, offset: int) -> None:
        if self._marker is not None:
            self._marker.lower_to(offset)

    def _after_truncation(self) -> None:
        """Where flushed is acknowledged, old bytes must not come back among what follows."""
        self._unsynced.named(self.directory)
        self._unsynced.wrote(self._active)
        self._sync_truncation(self._active)

    def _sync_truncation(self, active: Segment) -> None:
        if self.settings.flushed_is_acknowledged:
            active.sync()
            self.disk.sync_dir(self.directory)

    def _leave(self, segment: Segment) -> None:
        """It is not this log's any more, whatever becomes of its files, and when."""
        self._unsynced.removed(segment)
        segment.leave()

    def _drop(self, segment: Segment) -> None:
        self._leave(segment)
        segment.remove()

    # -- flush -----------------------------------------------------------------------------------

    def prepare_flush(self) -> Flush:
        """Everything appended so far. `run` it in any thread, then hand it to `complete_flush`;
        at most one is under way. One that fails is the end of this log (R45)."""
        assert not self._flushing, "a flush is under way"
        self._flushing = True
        segments, directories = self._unsynced.take()
        epochs = checkpoints.encode_epochs(self.epochs.entries) if self.epochs.changed else None
        self.epochs.changed = False
        return Flush(self, self.end_offset, self.generation, segments, epochs, directories)

    def complete_flush(self, flush: Flush) -> bool:
        """False when the log was truncated meanwhile: then the flush proves nothing (R22)."""
        self._flushing = False
        if flush.generation != self.generation:
            return False
        if flush.end_offset > self.flushed_offset and not self.deleted:
            self.flushed_offset = flush.end_offset
            if self._marker is not None:
                self._marker.raise_to(flush.end_offset)
        return True

    def flush(self) -> None:
        """Blocks: before serving, at clean shutdown, in tools."""
        flush = self.prepare_flush()
        flush.run()
        self.complete_flush(flush)

    # -- retention and end -----------------------------------------------------------------------

    def advance_start(self, offset: int) -> None:
        """Records below `offset` are gone for readers; whole segments go with `take_expired`."""
        if offset > self.end_offset:
            raise OffsetOutOfRange(self.directory, offset, self.start_offset, self.end_offset)
        if offset > self.start_offset:
            self.start_offset = offset
            self.epochs.advance_start(offset)

    def take_expired(self, *, high_watermark: int, wall_ms: int) -> list[Segment]:
        """Apply retention: these are not the log's any more, their files the caller's to remove.
        The active one only goes when it is not empty and expired too: then an empty one takes its
        place."""
        count = expired_segments(
            self._segments,
            self.settings,
            start_offset=self.start_offset,
            high_watermark=high_watermark,
            wall_ms=wall_ms,
        )
        if count == len(self._segments):
            self._roll(wall_ms).create_file()
            self._unsynced.named(self.directory)
        expired = self._segments[:count]
        for segment in expired:
            self._leave(segment)
        del self._segments[:count]
        if count:
            self.advance_start(max(self.start_offset, self._segments[0].base_offset))
        return expired

    def close(self) -> None:
        """In order: all durable, indexes and epochs in their files, nothing held open. In the midst
        of a flush nothing more is made durable: such a log was not closed clean."""
        if not self._flushing:
            self.flush()
        for segment in self._segments:
            segment.close()
        if self._marker is not None:
            self._marker.close()

    def discard(self) -> None:
        """Close the files of a deleted log. A file that stays open keeps its space on the disk."""
        for segment in self._segments:
            segment.discard()
        if self._marker is not None:
            self._marker.close()

    def check(self, path: str = "") -> None:
        """Read every batch, of one segment or of all. CorruptLog names the first that is
        damaged."""
        wanted = (each for each in self._segments if path in ("", each.path))
        check_all(wanted, self._epoch_of)

    def first_damage(self, path: str = "") -> CorruptLog | None:
        try:
            self.check(path)
        except CorruptLog as damage:
            return damage
        return None

    def _epoch_of(self, header: BatchHeader) -> int:
        """As the epochs have it; they say nothing about what lies before the start."""
        if header.next_offset <= self.start_offset:
            return header.leader_epoch
        return self.epochs.epoch_at(max(header.base_offset, self.start_offset))
