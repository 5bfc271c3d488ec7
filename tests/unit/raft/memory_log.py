"""A log in a list. When its node crashes, it loses the records that were not flushed."""

from __future__ import annotations

from typing import NamedTuple

from quorate.quorum.ids import EpochOffset
from quorate.quorum.log.batch import batches, records_of
from quorate.quorum.log.errors import BrokenChain
from quorate.quorum.raft.control_records import ControlRecord, decode_control
from quorate.quorum.raft.log_view import Epochs
from quorate.quorum.seams import Buffer


class Batch(NamedTuple):
    """One batch of the log."""

    base_offset: int
    next_offset: int
    epoch: int
    data: bytes

    def control_records(self) -> list[tuple[int, ControlRecord]]:
        """Return (offset, record) of each control record."""
        found = []
        for position, header in batches(self.data):
            if header.is_control:
                for record in records_of(self.data, position, header):
                    control = decode_control(record.key, record.value)
                    assert control is not None
                    found.append((record.offset, control))
        return found


class MemoryLog:
    """The log of one node. It implements `RaftLog`; see there for the methods without a
    docstring."""

    truncations: list[int]

    def __init__(self) -> None:
        self.start = EpochOffset(-1, 0)  # the log start, and the epoch before it
        self._batches: list[Batch] = []
        self._flushed_offset = 0
        self.truncations = []

    @property
    def batches(self) -> list[Batch]:
        return self._batches

    @property
    def flushed_offset(self) -> int:
        return self._flushed_offset

    @property
    def start_offset(self) -> int:
        return self.start.offset

    @property
    def end_offset(self) -> int:
        return self.batches[-1].next_offset if self.batches else self.start.offset

    @property
    def last_epoch(self) -> int:
        return self.batches[-1].epoch if self.batches else self.start.epoch

    @property
    def epochs(self) -> Epochs:
        return self

    def end_offset_for(self, epoch: int) -> EpochOffset | None:
        if epoch == -1 or epoch > self.last_epoch:
            return None
        below = [batch for batch in self.batches if batch.epoch <= epoch]
        if not below:
            return EpochOffset(epoch, self.start.offset)
        return EpochOffset(below[-1].epoch, below[-1].next_offset)

    def append(self, data: Buffer, *, wall_ms: int) -> None:
        data = bytes(data)
        for position, header in batches(data):
            if header.base_offset != self.end_offset or header.leader_epoch < self.last_epoch:
                raise BrokenChain(f"batch {header} cannot follow {self.batches[-1:]}")
            self.batches.append(
                Batch(
                    header.base_offset,
                    header.next_offset,
                    header.leader_epoch,
                    data[position : position + header.size_bytes],
                )
            )

    def read(self, offset: int, max_bytes: int, *, end: int | None = None) -> bytes:
        out = b""
        for batch in self.batches:
            if batch.next_offset <= offset or (end is not None and batch.next_offset > end):
                continue
            if out and len(out) + len(batch.data) > max_bytes:
                break
            out += batch.data
        return out

    def truncate_to(self, offset: int) -> None:
        self.truncations.append(offset)
        self.batches[:] = [batch for batch in self.batches if batch.next_offset <= offset]
        self._flushed_offset = min(self.flushed_offset, offset)

    def reset_to(self, offset: int, epoch: int) -> None:
        self.batches.clear()
        self.start = EpochOffset(epoch, offset)
        self._flushed_offset = 0

    def cut_head(self, offset: int) -> None:
        """Remove the records that a snapshot up to `offset` replaces."""
        epoch = max(each.epoch for each in self.batches if each.next_offset <= offset)
        self.batches[:] = [each for each in self.batches if each.base_offset >= offset]
        self.start = EpochOffset(epoch, offset)

    def flush(self, offset: int) -> None:
        """Make the log durable up to `offset`."""
        self._flushed_offset = max(self.flushed_offset, min(offset, self.end_offset))

    def crash(self) -> None:
        """Lose the batches that were not flushed."""
        self.forget_from(self.flushed_offset)

    def forget_from(self, offset: int) -> None:
        """Lose records that were reported as durable, as a faulty disk may."""
        self.batches[:] = [batch for batch in self.batches if batch.next_offset <= offset]
        self._flushed_offset = min(self.flushed_offset, offset)

    def only_in_page_cache_from(self, offset: int) -> None:
        """Mark records as written but not flushed, as a process that dies leaves them."""
        self._flushed_offset = offset

    def entries(self, end: int | None = None) -> list[tuple[int, bytes]]:
        """Return (epoch, value) by offset."""
        return [
            (batch.epoch, bytes(record.value or b""))
            for batch in self.batches
            if end is None or batch.next_offset <= end
            for position, header in batches(batch.data)
            for record in records_of(batch.data, position, header)
        ]
