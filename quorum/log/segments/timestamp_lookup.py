"""The lookup, in steps, of the first record whose timestamp is at or after a given time.

The first record is the one with the lowest offset. Its timestamp need not be the lowest.

A lookup is a generator, and its driver is the code that resumes it. It runs in the thread that
owns the log, usually the event loop. Between two steps, other code may change the log.

The lookup walks over batch headers and decodes the batches that may hold the record. It pauses
after HEADERS_PER_STEP headers (`segment.py`), RECORDS_PER_STEP records or SEGMENTS_PER_STEP
segments. After each pause it finds its segment again by offset, because the log may have been
truncated meanwhile, or retention may have removed its beginning.

The lookup decompresses a small compressed batch itself: one within SMALL_PAYLOAD_BYTES and
SMALL_BYTES. Any other compressed batch is large. For a large batch the lookup yields a `Decompress`
request, which its driver may run in another thread. Uncompressed batches need no request.

To bound memory, a driver should let only one lookup at a time hold a large payload. The lookup
frees the compressed payload that it has read, and yields `Acquire`. Then it reads the payload again
and yields `Decompress`. It yields `Release` when it has searched the decompressed payload.

The lookup yields no `Release` if it fails in between, or finds that the log has changed. A driver
must therefore do two things. It must end the hold when the lookup ends. It must also resume a
lookup immediately if the lookup yields `Acquire` while it is already the holder.

If a batch has a right CRC and an unreadable payload, the lookup raises CorruptBatch, because the
producer sent the batch like this. If the disk does not return the bytes that were appended, the
lookup raises CorruptLog.
"""

from __future__ import annotations

from collections.abc import Generator
from itertools import islice
from typing import NamedTuple, Protocol, TypeVar

from quorate.quorum.log.batches.batch import BatchHeader, payload_of, read_header, records_in
from quorate.quorum.log.batches.compression import ExpandsTooFar, decompress
from quorate.quorum.log.files.errors import CorruptBatch
from quorate.quorum.log.segments.segment import HEADERS_PER_STEP, Segment
from quorate.quorum.seams import Buffer, Disk

RECORDS_PER_STEP = 512
"""The number of records of one batch that a step decodes."""
SEGMENTS_PER_STEP = 16
"""The number of segments that a step skips because all of their records are too old."""
SMALL_PAYLOAD_BYTES = 16 * 1024
"""The largest compressed payload of a small batch."""
SMALL_BYTES = 256 * 1024
"""The largest decompressed payload of a small batch. Decompression stops when it exceeds this."""

T = TypeVar("T")


class SearchedLog(Protocol):
    """The part of a log that a lookup reads; `Log` satisfies it."""

    disk: Disk
    start_offset: int
    end_offset: int
    deleted: bool

    @property
    def generation(self) -> int:
        """Return the number of truncations and resets of this log."""

    def segment_of(self, offset: int) -> Segment:
        """Return the segment that holds `offset`, which lies within the log."""

    def read(self, offset: int, max_bytes: int) -> bytes:
        """Return whole batches, beginning with the one that holds `offset`. Return at least that
        one, even if it is larger than `max_bytes`."""


class TimestampOffset(NamedTuple):
    """The record that a lookup found."""

    timestamp_ms: int
    offset: int
    leader_epoch: int


class Acquire(NamedTuple):
    """The request to hold a large payload. The driver resumes the lookup when no other lookup holds
    one.
    """


class Decompress(NamedTuple):
    """The request to decompress a payload, for instance in the thread that does the work of `disk`.

    The driver calls `decompress`. It sends the result to the lookup, or throws the exception into
    the lookup.
    """

    disk: Disk
    codec: int
    payload: Buffer


class Release(NamedTuple):
    """The lookup does not need the large payload any more."""


LookupRequest = Acquire | Decompress | Release | None
"""The values that a lookup yields. None is only a pause. A driver sends None to resume the lookup,
except after Decompress."""
Lookup = Generator[LookupRequest, Buffer | None, T]


def run_lookup(lookup: Lookup[T]) -> T:
    """Run a lookup to its end in this thread and return its result. Block. Raise the errors of the
    lookup."""
    reply: Buffer | None = None
    while True:
        try:
            asked = lookup.send(reply)
        except StopIteration as end:
            found: T = end.value
            return found
        reply = None
        if isinstance(asked, Decompress):
            try:
                reply = decompress(asked.codec, asked.payload)
            except CorruptBatch as error:
                lookup.throw(error)
                raise


def look_up_timestamp(log: SearchedLog, timestamp_ms: int) -> Lookup[TimestampOffset | None]:
    """Return the record with the lowest offset among those with a timestamp of at least
    `timestamp_ms`. Return None if there is no such record, or if the log is deleted meanwhile.

    The search covers the offsets from `log.start_offset` up to `log.end_offset`, also those that
    are not committed. `timestamp_ms` is in ms since 1970. The special values of ListOffsets, such
    as -1, have no meaning here. Raise CorruptBatch, CorruptLog or OSError."""
    offset, generation = log.start_offset, log.generation
    base = -1  # base offset of the current segment
    skipped = 0
    while not log.deleted:
        if log.generation != generation:  # it was truncated
            offset, generation, base = log.start_offset, log.generation, -1
        offset = max(offset, log.start_offset)
        if offset >= log.end_offset:
            break
        segment = log.segment_of(offset)
        if segment.base_offset != base:
            base = segment.base_offset
            yield from segment.learn_max_timestamp()
            if segment.removed:
                continue
            if segment.max_timestamp_ms < timestamp_ms:
                offset = segment.next_offset
                skipped += 1
                if skipped % SEGMENTS_PER_STEP == 0:
                    yield None
                continue
            offset = max(offset, segment.offset_before_time(timestamp_ms))
        walk = segment.walk(segment.position_of(offset))
        for _, header in islice(walk, HEADERS_PER_STEP):
            offset = header.next_offset
            if header.max_timestamp_ms >= timestamp_ms:
                found = yield from _first_in(log, header, timestamp_ms)
                if found is not None:
                    return found
                break  # the log may have changed meanwhile
        yield None
    return None


def _first_in(
    log: SearchedLog, header: BatchHeader, timestamp_ms: int
) -> Lookup[TimestampOffset | None]:
    """Return the first such record of a batch. Return None if there is none, or if the log changed
    meanwhile."""
    offset = max(header.base_offset, log.start_offset)
    data = log.read(offset, 1)
    payload = payload_of(data, 0, header)
    if header.codec == 0:
        return (yield from _first_of(log, header, payload, timestamp_ms))
    if len(payload) <= SMALL_PAYLOAD_BYTES:
        try:
            small: Buffer | None = decompress(header.codec, payload, SMALL_BYTES)
        except ExpandsTooFar:
            small = None
        if small is not None:
            return (yield from _first_of(log, header, small, timestamp_ms))
    generation = log.generation
    del data, payload
    yield Acquire()
    if log.generation != generation or log.deleted or offset < log.start_offset:
        return None
    data = log.read(offset, 1)
    header = read_header(data)  # the log cleaner may have replaced the batch, or removed it
    if header.codec == 0:
        found = yield from _first_of(log, header, payload_of(data, 0, header), timestamp_ms)
        yield Release()
        return found
    decompressed = yield Decompress(log.disk, header.codec, payload_of(data, 0, header))
    assert decompressed is not None
    del data
    found = yield from _first_of(log, header, decompressed, timestamp_ms)
    del decompressed
    yield Release()
    return found


def _first_of(
    log: SearchedLog, header: BatchHeader, payload: Buffer, timestamp_ms: int
) -> Lookup[TimestampOffset | None]:
    """Return the first such record of a decompressed payload, or None if there is none."""
    offsets = range(header.base_offset, header.next_offset)
    for number, record in enumerate(records_in(payload, header), 1):
        if record.timestamp_ms >= timestamp_ms and record.offset >= log.start_offset:
            if record.offset not in offsets:
                raise CorruptBatch(f"a record has offset {record.offset}, its batch {offsets}")
            return TimestampOffset(record.timestamp_ms, record.offset, header.leader_epoch)
        if number % RECORDS_PER_STEP == 0:
            yield None
    return None
