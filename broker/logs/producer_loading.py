"""Reads the producer states of a partition from its newest snapshot and the log behind it.

Two callers read them:

- The opening of a log, in the disk's thread, which nothing else touches yet
  (`snapshotted_producers`).
- The load for a log in use (`broker/replication/partitions/producer_loader.py`). The event loop
  lists the parts of the log that must be read (`log_parts`), and the disk's thread reads them as
  files (`read_parts`). The `Log` is not safe for two threads, so the thread does not use it.

Each step reads about SCAN_BYTES.
"""

from __future__ import annotations

from typing import NamedTuple

from quorate.broker.logs.producer_snapshots import decode, list_snapshots, snapshot_path
from quorate.broker.partition.producer_state import ProducerStates
from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.log.batches.batch import (
    HEADER_BYTES,
    BatchHeader,
    batches,
    checksum_is_valid,
    read_header,
)
from quorate.quorum.log.files import checkpoints
from quorate.quorum.log.files.errors import CorruptBatch, CorruptLog
from quorate.quorum.log.log import Log
from quorate.quorum.seams import Disk, File

SCAN_BYTES = 1 << 20
"""Bytes that one step reads, or one batch if that is larger."""


class Snapshot(NamedTuple):
    """The producer states as of `offset`."""

    states: ProducerStates
    offset: int


class LogPart(NamedTuple):
    """The bytes `start` to `stop` of a segment file. The batch at `start` holds `offset`, unless
    that offset is missing. `gaps` is True if offsets may be missing before a batch. No batch
    reaches beyond `end_offset`."""

    path: str
    offset: int
    start: int
    stop: int
    gaps: bool
    end_offset: int


def newest_snapshot(
    disk: Disk, directory: str, start_offset: int, end_offset: int
) -> Snapshot | None:
    """Return the newest whole snapshot between the two offsets, inclusive, or None. A damaged
    snapshot is skipped. Blocks."""
    for offset in reversed(list_snapshots(disk, directory)):
        if start_offset <= offset <= end_offset:
            content = checkpoints.read_small(disk, snapshot_path(directory, offset))
            states = decode(content or b"")
            if states is not None:
                return Snapshot(states, offset)
    return None


def snapshotted_producers(disk: Disk, log: Log) -> IncrementalWork[ProducerStates | None]:
    """Return the states as of the end of a log that is being opened, or None if they must be loaded
    later: the log has no usable snapshot, or is damaged behind it.

    A log that was flushed usually has a snapshot, unless it was truncated below it. Damage is not
    reported: a later load finds it again, and decides about it."""
    newest = newest_snapshot(disk, log.directory, log.start_offset, log.end_offset)
    if newest is None:
        return None
    states, offset = newest
    try:
        while offset < log.end_offset:
            headers = [header for _, header in batches(log.read(offset, SCAN_BYTES), verify=False)]
            # The first batch may begin before `offset`.
            states.rebuild(header for header in headers if header.base_offset >= offset)
            offset = headers[-1].next_offset
            yield
    except CorruptLog:
        return None
    return states


def log_parts(log: Log, offset: int) -> list[LogPart]:
    """Return the parts of the log from `offset` to the log end, one for each segment.

    Call it on the event loop. Blocks for the search of `offset` in one index, and for the end of a
    replacement of segments. Raise CorruptLog if the segment of `offset` is damaged there."""
    log.settle_swap()
    parts = []
    while offset < log.end_offset:
        segment = log.segment_of(offset)
        start = segment.position_of(offset)
        end = segment.next_offset
        parts.append(LogPart(segment.path, offset, start, segment.size, log.gaps, end))
        offset = end
    return parts


def read_parts(disk: Disk, parts: list[LogPart], states: ProducerStates) -> IncrementalWork[None]:
    """Add the batches of `parts` to `states`, in any thread. Raise CorruptLog at the first batch
    that is damaged or does not continue the log, or OSError."""
    for part in parts:
        file = disk.open(part.path, writable=False)
        try:
            yield from _read_part(file, part, states)
        finally:
            file.close()


def _read_part(file: File, part: LogPart, states: ProducerStates) -> IncrementalWork[None]:
    position, offset = part.start, part.offset
    while position < part.stop:
        data = file.pread(min(SCAN_BYTES, part.stop - position), position)
        try:
            size_bytes = read_header(data).size_bytes
            if size_bytes > len(data):
                data = file.pread(size_bytes, position)
            headers = _whole_batches(data)
            _check_chain(headers, offset, part, first=position == part.start)
        except CorruptBatch as error:
            raise CorruptLog(part.path, position, offset, str(error)) from error
        states.rebuild(header for header in headers if header.base_offset >= offset)
        position += sum(header.size_bytes for header in headers)
        offset = headers[-1].next_offset
        yield


def _whole_batches(data: bytes) -> list[BatchHeader]:
    """Return the headers of the whole batches at the start of `data`, at least one."""
    headers: list[BatchHeader] = []
    at = 0
    while len(data) - at >= HEADER_BYTES:
        header = read_header(data, at)
        if at + header.size_bytes > len(data):
            break
        if not checksum_is_valid(data, at, header):
            raise CorruptBatch(f"the batch of offset {header.base_offset} fails its CRC-32C")
        headers.append(header)
        at += header.size_bytes
    if not headers:
        raise CorruptBatch(f"the batch is cut off after {len(data)} bytes")
    return headers


def _check_chain(headers: list[BatchHeader], offset: int, part: LogPart, *, first: bool) -> None:
    for header in headers:
        holds = first and header.base_offset <= offset < header.next_offset
        missing = part.gaps and header.base_offset > offset
        missing = missing and header.next_offset <= part.end_offset
        if not (holds or missing) and header.base_offset != offset:
            raise CorruptBatch(f"the batch says offset {header.base_offset}, not {offset}")
        first, offset = False, header.next_offset
