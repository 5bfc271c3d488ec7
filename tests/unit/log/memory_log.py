"""A log in memory: the part that the in-memory logs of Raft and of partitions share."""

from __future__ import annotations

from typing import NamedTuple

from quorate.quorum.ids import EpochOffset
from quorate.quorum.log.batches.batch import Placed, batches, records_of
from quorate.quorum.log.files.errors import BrokenChain
from quorate.quorum.log.segments.epochs import NO_EPOCH
from quorate.quorum.raft.control_records import ControlRecord, decode_control
from quorate.quorum.seams import Buffer


class Batch(NamedTuple):
    """One batch of a log, with the fields of its header that tests compare."""

    base_offset: int
    next_offset: int
    epoch: int
    data: bytes

    def control_records(self) -> list[tuple[int, ControlRecord]]:
        """Return the control records of the batch with their offsets."""
        found = []
        for position, header in batches(self.data):
            if header.is_control:
                for record in records_of(self.data, position, header):
                    control = decode_control(record.key, record.value)
                    assert control is not None
                    found.append((record.offset, control))
        return found


class MemoryLog:
    """A list of batches, with the checks and the reads of the real log.

    `start` is the log start offset, with the epoch of the record before it. Subclasses define the
    epochs of the log: `MemoryMetadataLog` and `MemoryPartitionLog`.
    """

    def __init__(self) -> None:
        self.start = EpochOffset(NO_EPOCH, 0)
        self._batches: list[Batch] = []

    @property
    def batches(self) -> list[Batch]:
        return self._batches

    @property
    def start_offset(self) -> int:
        return self.start.offset

    @property
    def end_offset(self) -> int:
        return self.batches[-1].next_offset if self.batches else self.start.offset

    @property
    def last_epoch(self) -> int:
        return self.batches[-1].epoch if self.batches else self.start.epoch

    def append(self, data: Buffer, *, wall_ms: int, placed: Placed | None = None) -> None:
        """Append whole batches. Raise BrokenChain if one of them does not continue the log."""
        data = bytes(data)
        for position, header in batches(data):
            if header.base_offset != self.end_offset or header.leader_epoch < self.last_epoch:
                raise BrokenChain(f"batch {header} cannot follow {self.batches[-1:]}")
            content = data[position : position + header.size_bytes]
            self.add(Batch(header.base_offset, header.next_offset, header.leader_epoch, content))

    def add(self, batch: Batch) -> None:
        """Add a batch that continues the log."""
        self._batches.append(batch)

    def read(self, offset: int, max_bytes: int, *, end: int | None = None) -> bytes:
        """Return whole batches from `offset` on, at least one if there is one below `end`."""
        out = b""
        for batch in self.batches:
            if batch.next_offset <= offset or (end is not None and batch.next_offset > end):
                continue
            if out and len(out) + len(batch.data) > max_bytes:
                break
            out += batch.data
        return out

    def truncate_to(self, offset: int) -> None:
        """Remove the batches that end above `offset`."""
        self.batches[:] = [batch for batch in self.batches if batch.next_offset <= offset]

    def reset_to(self, offset: int, epoch: int = NO_EPOCH) -> None:
        """Remove all batches, and continue at `offset`. `epoch` is that of the record before."""
        self.batches.clear()
        self.start = EpochOffset(epoch, offset)
