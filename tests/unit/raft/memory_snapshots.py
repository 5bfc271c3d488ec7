"""Snapshots in dictionaries: the bytes by (epoch, end offset)."""

from __future__ import annotations

from quorate.quorum.ids import EpochOffset
from quorate.quorum.seams import Buffer


class MemorySnapshots:
    """The snapshots of one node. It implements `RaftSnapshots`; see there for the methods."""

    def __init__(self) -> None:
        self.files: dict[EpochOffset, bytes] = {}
        self.parts: dict[EpochOffset, bytes] = {}

    @property
    def earliest(self) -> EpochOffset | None:
        return min(self.files, default=None)

    @property
    def latest(self) -> EpochOffset | None:
        return max(self.files, default=None)

    def __contains__(self, snapshot: EpochOffset) -> bool:
        return snapshot in self.files

    def size_of(self, snapshot: EpochOffset) -> int:
        return len(self.files[snapshot])

    def read(self, snapshot: EpochOffset, position: int, max_bytes: int) -> bytes:
        return self.files[snapshot][position : position + max_bytes]

    def part_bytes(self, snapshot: EpochOffset) -> int:
        return len(self.parts.setdefault(snapshot, b""))

    def write_part(self, snapshot: EpochOffset, position: int, data: Buffer) -> None:
        part = self.parts[snapshot]
        assert position == len(part), "a hole"
        self.parts[snapshot] = part + bytes(data)

    def drop_part(self, snapshot: EpochOffset) -> None:
        self.parts.pop(snapshot, None)

    def added(self, snapshot: EpochOffset, size_bytes: int) -> None:
        self.files[snapshot] = self.parts.pop(snapshot)
        assert len(self.files[snapshot]) == size_bytes

    def remove_before(self, offset: int) -> None:
        self.files = {each: data for each, data in self.files.items() if each.offset >= offset}
