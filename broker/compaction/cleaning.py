"""One cleaning of one log: two passes over its sealed segments (Kafka's Cleaner).

The first pass reads the dirty segments and notes the latest offset of each key. If the map of
offsets is full, the pass ends there, even within a batch. The second pass reads all segments from
the beginning of the log, and writes what stays, one new segment for each group.

The passes run in the thread of long work (`Disk.submit_long`). They read the segments as files,
because the `Log` is not safe for two threads. Nothing of the log is changed here;
`quorum/log/segments/segment_swap.py` replaces the segments afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from quorate.broker.compaction.batch_filter import Retention, filtered
from quorate.broker.compaction.markers import NoTransactions, Transactions
from quorate.broker.compaction.offset_map import OffsetMap
from quorate.broker.compaction.record_spans import (
    RECORDS_PER_STEP,
    payload_to_read,
    spans_of,
    wrong_offset,
)
from quorate.broker.compaction.segment_source import SourceBatch, SourceSegment, read_batches
from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.log.batches.batch import read_header
from quorate.quorum.log.checking.integrity import EpochOf
from quorate.quorum.log.files.errors import CorruptBatch
from quorate.quorum.log.files.offset_gaps import allow_gaps
from quorate.quorum.log.segments.segment import Segment
from quorate.quorum.log.segments.segment_swap import discard_cleaned, new_cleaned_segment, seal
from quorate.quorum.seams import Buffer, Disk

SYNC_BYTES = 512 * 1024
"""Bytes of a cleaned segment that wait for one fsync. The fsync of a whole segment would keep the
disk busy, and other fsyncs and appends would wait for it."""
WRITE_BYTES = 64 * 1024
"""Bytes of a cleaned segment that one step writes, or one batch if that is larger. A step also
writes no more than RECORDS_PER_STEP batches."""
STEP_BYTES = 8 * 1024
"""Bytes of batches that one step looks at, or one batch if that is larger. A step also ends after
RECORDS_PER_STEP records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CleaningPlan:
    """The facts with which a cleaning begins. `now_ms` is the wall time."""

    directory: str
    index_interval_bytes: int
    dirty: tuple[SourceSegment, ...]
    """The segments with dirty records, in offset order."""
    first_dirty: int
    now_ms: int
    delete_retention_ms: int
    map_bytes: int
    load_factor: float
    buffer_bytes: int
    epoch_of: EpochOf
    """Returns the leader epoch that the log has for a batch, as of the beginning."""
    last_batches: Mapping[int, int]
    """The last offset of the newest batch of each active producer."""


@dataclass(slots=True)
class CleaningStats:
    """The work of one cleaning so far."""

    read_bytes: int = 0
    written_bytes: int = 0
    keys: int = 0
    capacity: int = 1
    unreadable_batches: int = 0

    @property
    def io_bytes(self) -> int:
        """Bytes that were read and written."""
        return self.read_bytes + self.written_bytes


@dataclass(slots=True)
class Cleaning:
    """One cleaning. Only the thread of long work uses it while a step runs."""

    disk: Disk
    plan: CleaningPlan
    transactions: Transactions = field(default_factory=NoTransactions)
    stats: CleaningStats = field(default_factory=CleaningStats)
    retention: Retention = field(init=False)

    def __post_init__(self) -> None:
        plan = self.plan
        offsets = OffsetMap(plan.map_bytes, plan.load_factor)
        offsets.latest_offset = plan.first_dirty - 1
        self.stats.capacity = offsets.capacity
        self.retention = Retention(
            offsets,
            plan.now_ms,
            plan.delete_retention_ms,
            plan.last_batches,
            self.transactions,
        )

    @property
    def end_offset(self) -> int:
        """The offset below which the log is clean when all segments are replaced."""
        return self.retention.offsets.latest_offset + 1

    def build_map(self) -> IncrementalWork[None]:
        """Return the steps of the first pass. Raise CorruptLog or OSError."""
        offsets = self.retention.offsets
        for source in self.plan.dirty:
            pause = _Pause()
            for batch in read_batches(
                self.disk, source, self.plan.buffer_bytes, self.plan.epoch_of
            ):
                self.stats.read_bytes += len(batch.data)
                header = batch.header
                data = header.record_count and not header.is_control
                if data and not self.transactions.discards_data(header):
                    full = yield from self._note_keys(batch)
                    if full:
                        return
                offsets.pass_over(header.last_offset)
                if pause.is_due(batch):
                    yield
            offsets.pass_over(source.next_offset - 1)  # offsets may be missing (KAFKA-8764)
            yield

    def _note_keys(self, batch: SourceBatch) -> IncrementalWork[bool]:
        """Note the keys of a batch. Return True if the map is full.

        If the batch is unreadable, note none of its keys, not even those before the fault. The
        batch stays as it is, and no reader gets these records. An earlier record of such a key may
        therefore be the last one that a reader gets."""
        header, offsets = batch.header, self.retention.offsets
        first_dirty = self.plan.first_dirty
        base, last = header.base_offset, header.last_offset
        noted = before = base - 1
        full = False
        try:
            payload = payload_to_read(batch.data, header)
            for spans in spans_of(payload, header.record_count):
                keys = []
                for _, _, _, delta, key, _ in spans:
                    offset = base + delta
                    if not before < offset <= last:
                        raise wrong_offset(header, offset)
                    before = offset
                    if offset >= first_dirty:
                        keys.append((key, offset))
                if keys and not full:
                    taken = offsets.put_all(keys)
                    full = taken < len(keys)
                    noted = keys[taken - 1][1] if taken else noted
                if len(spans) == RECORDS_PER_STEP:
                    yield
        except CorruptBatch:
            self.stats.unreadable_batches += 1
            offsets.discard()
            full = False
        else:
            while offsets.commit_some():
                yield
            offsets.commit(noted)
        self.stats.keys = len(offsets)
        return full

    def write_group(self, group: Sequence[SourceSegment]) -> IncrementalWork[Segment]:
        """Return the steps that write what stays of these segments into one `.cleaned` segment.

        The segment is durable when it is returned, and so is the marker of gaps. Raise CorruptLog
        or OSError."""
        plan = self.plan
        discard_cleaned(self.disk, plan.directory)
        allow_gaps(self.disk, plan.directory)
        cleaned = new_cleaned_segment(
            self.disk, plan.directory, group[0].base_offset, plan.index_interval_bytes
        )
        final = next((each for each in reversed(group) if each.size), None)
        out = _Output(cleaned, self.stats, min(WRITE_BYTES, plan.buffer_bytes))
        for source in group:
            pause = _Pause()
            for batch in read_batches(self.disk, source, plan.buffer_bytes, plan.epoch_of):
                self.stats.read_bytes += len(batch.data)
                last = source is final and batch.end == source.size
                kept = yield from filtered(batch.data, batch.header, self.retention, last=last)
                if kept is not None:
                    out.add(kept)
                if out.is_full:
                    yield
                    out.flush()
                    yield
                if pause.is_due(batch):
                    yield
        out.flush()
        yield
        seal(self.disk, plan.directory, cleaned)
        return cleaned


@dataclass(slots=True)
class _Pause:
    """The batches and records since the last pause of a pass over one segment."""

    at: int = 0
    records: int = 0

    def is_due(self, batch: SourceBatch) -> bool:
        """Count a batch. Return True if the step has looked at enough."""
        self.records += batch.header.record_count
        if batch.end - self.at < STEP_BYTES and self.records < RECORDS_PER_STEP:
            return False
        self.at, self.records = batch.end, 0
        return True


@dataclass(slots=True)
class _Output:
    """The batches of one cleaned segment that are not written yet."""

    segment: Segment
    stats: CleaningStats
    write_bytes: int
    pending: bytearray = field(default_factory=bytearray)
    positions: list[int] = field(default_factory=list)
    unsynced_bytes: int = 0

    def add(self, batch: Buffer) -> None:
        self.positions.append(len(self.pending))
        self.pending += batch

    @property
    def is_full(self) -> bool:
        """True if the batches are enough for one write."""
        return len(self.pending) >= self.write_bytes or len(self.positions) >= RECORDS_PER_STEP

    def flush(self) -> None:
        """Write the batches to the file. Block. Sync the file after SYNC_BYTES."""
        if self.positions:
            data = bytes(self.pending)
            placed = [(each, read_header(data, each)) for each in self.positions]
            self.segment.append(data, placed)
            self.stats.written_bytes += len(data)
            self.pending.clear()
            self.positions.clear()
            self.unsynced_bytes += len(data)
            if self.unsynced_bytes >= SYNC_BYTES:
                self.segment.sync()
                self.unsynced_bytes = 0
