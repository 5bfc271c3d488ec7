"""What the core needs of the log and of its snapshots; `Log` and `SnapshotFiles` of `quorum/log`
have it.

The core appends, reads and truncates directly, since these are cheap and never wait; only
making the log durable is an effect. A failed write raises and stops the node.
"""

from __future__ import annotations

from typing import Protocol

from quorate.quorum.ids import EpochOffset
from quorate.quorum.seams import Buffer


class Epochs(Protocol):
    def end_offset_for(self, epoch: int) -> EpochOffset | None:
        """The greatest epoch in the log that is not above `epoch`, and where it ends. None when
        `epoch` is above all; (`epoch`, log start) when it is below all."""


class RaftLog(Protocol):
    @property
    def start_offset(self) -> int: ...

    @property
    def end_offset(self) -> int: ...

    @property
    def flushed_offset(self) -> int: ...

    @property
    def last_epoch(self) -> int:
        """Of the last batch; -1 when there never was one."""

    @property
    def epochs(self) -> Epochs: ...

    def append(self, data: Buffer, *, wall_ms: int) -> None: ...

    def read(self, offset: int, max_bytes: int, *, end: int | None = None) -> Buffer:
        """Whole batches, at least one when there is one below `end`."""

    def truncate_to(self, offset: int) -> None: ...

    def reset_to(self, offset: int, epoch: int) -> None:
        """Empty from now on, to go on at `offset`; all before it ended in `epoch`."""


class RaftSnapshots(Protocol):
    """A snapshot is named by the (epoch, end offset) that it stands for."""

    @property
    def earliest(self) -> EpochOffset | None: ...

    @property
    def latest(self) -> EpochOffset | None: ...

    def __contains__(self, snapshot: EpochOffset, /) -> bool: ...

    def size_of(self, snapshot: EpochOffset) -> int: ...

    def read(self, snapshot: EpochOffset, position: int, max_bytes: int) -> Buffer | None:
        """None when it is damaged."""

    def part_bytes(self, snapshot: EpochOffset) -> int:
        """How much of it is received already, perhaps in an earlier life."""

    def write_part(self, snapshot: EpochOffset, position: int, data: Buffer) -> None: ...

    def drop_part(self, snapshot: EpochOffset) -> None: ...

    def added(self, snapshot: EpochOffset, size_bytes: int) -> None: ...

    def remove_before(self, offset: int) -> None:
        """Those that end before `offset`, where the log starts now."""
