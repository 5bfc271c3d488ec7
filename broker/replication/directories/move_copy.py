"""The copy of a move: a future log becomes a prefix of the current log, and at last its equal.

The current log is read in the thread of long work, in pieces of whole batches. A piece counts only
if the current log was not truncated meanwhile. The event loop appends it to the future log.

The two logs are compared by leader epochs, as a follower's log with its leader's (KIP-101). The
future log is truncated where it diverges. If the current log begins above the end of the future
log, the future log begins again there.
"""

from __future__ import annotations

from quorate.broker.partition.local_replica import LocalReplica
from quorate.broker.partition.partition import Partition
from quorate.quorum.ids import Uuid
from quorate.quorum.log.batches.batch import HEADER_BYTES, read_header
from quorate.quorum.log.files.errors import CorruptBatch
from quorate.quorum.log.log import Log
from quorate.quorum.protocol.errors import KafkaError
from quorate.quorum.seams import Buffer, File

COPIED_BYTES = 262_144
"""The bytes of one piece, or one larger batch."""
COPIED_BATCHES = 256
"""Maximum number of batches in one piece."""


def align(current: Partition, future: LocalReplica) -> None:
    """Truncate the future log until it is a prefix of the current one. Blocks like a truncation.
    Raise OSError."""
    while True:
        try:
            diverging = current.diverging(future.log.end_offset, future.log.last_epoch)
        except KafkaError:  # the current log begins above the end of the future one
            future.restart_at(current.log.start_offset)
            return
        if diverging is None:
            return
        before = future.log.end_offset, future.log.last_epoch
        future.truncate(diverging)
        if before == (future.log.end_offset, future.log.last_epoch):
            future.restart_at(current.log.start_offset)
            return


def read_piece(file: File, position: int, size: int) -> bytes:
    """Return whole batches of a segment's file, from `position` on, COPIED_BYTES of the next `size`
    bytes at most, but at least one batch. Block. Raise CorruptBatch or OSError."""
    data = file.pread(min(size, COPIED_BYTES), position)
    first = read_header(data).size_bytes
    if len(data) < first <= size:
        data = file.pread(first, position)
    end = 0
    for _ in range(COPIED_BATCHES):
        if end + HEADER_BYTES > len(data):
            break
        after = end + read_header(data, end).size_bytes
        if after > len(data):
            break
        end = after
    if not end:
        raise CorruptBatch(f"the segment ends within the batch of {first} bytes at {position}")
    return data[:end]


def append_piece(current: Partition, future: LocalReplica, data: Buffer, wall_ms: int) -> None:
    """Append a piece of the current log to the future log, and let it begin where the current one
    does. Raise CorruptBatch, BrokenChain or OSError."""
    future.leader_epoch = current.leader_epoch
    future.append_as_follower(data, wall_ms=wall_ms)
    future.log.advance_start(min(current.log.start_offset, future.log.end_offset))


def has_all_records(current: Log, future: Log) -> bool:
    """Return True if the future log has all records of the current one. The caller has aligned the
    two."""
    return future.end_offset == current.end_offset


def may_swap(accepted: bool, recorded: Uuid | None, target: Uuid) -> bool:
    """Return True if the future log may take the place of the current one: the controller has
    accepted the report of the target after everything reported earlier, and the metadata of this
    broker names the target. A start after a crash takes the log that the metadata names."""
    return accepted and recorded == target
