"""A log in memory with the contract of `PartitionLog`: batches, and the real epoch cache."""

from __future__ import annotations

from quorate.quorum.log.batch import BatchHeader, batches
from quorate.quorum.log.epochs import EpochCache
from quorate.quorum.log.errors import BrokenChain
from quorate.quorum.seams import Buffer


class MemoryLog:
    def __init__(self) -> None:
        self.start_offset = 0
        self.end_offset = 0
        self.batches: list[tuple[BatchHeader, bytes]] = []
        self.epochs = EpochCache(lambda: self.end_offset)

    @property
    def last_epoch(self) -> int:
        return self.epochs.latest

    def append(self, data: Buffer, *, wall_ms: int, checked: BatchHeader | None = None) -> None:
        for position, header in batches(data):
            if header.base_offset != self.end_offset or header.leader_epoch < self.last_epoch:
                raise BrokenChain(f"{header} cannot follow offset {self.end_offset}")
            self.epochs.assign(header.leader_epoch, header.base_offset)
            self.batches.append((header, bytes(data[position : position + header.size_bytes])))
            self.end_offset = header.next_offset

    def read(self, offset: int, max_bytes: int, *, end: int | None = None) -> Buffer:
        out = b""
        limit = self.end_offset if end is None else end
        for header, data in self.batches:
            if header.next_offset <= offset or header.next_offset > limit:
                continue
            if out and len(out) + len(data) > max_bytes:
                break
            out += data
        return out

    def truncate_to(self, offset: int) -> None:
        self.epochs.truncate_to(offset)
        while self.batches and self.batches[-1][0].next_offset > offset:
            self.batches.pop()
        if offset < self.end_offset:
            self.end_offset = max(
                self.start_offset, self.batches[-1][0].next_offset if self.batches else 0
            )
            self.epochs.truncate_to(self.end_offset)

    def reset_to(self, offset: int) -> None:
        self.batches.clear()
        self.epochs.clear()
        self.start_offset = self.end_offset = offset

    def advance_start(self, offset: int) -> None:
        self.start_offset = max(self.start_offset, offset)

    def assign_epoch(self, epoch: int) -> None:
        self.epochs.assign(epoch, self.end_offset)
