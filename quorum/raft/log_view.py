"""The interface through which the core uses its log and its snapshots.

`Log` and `SnapshotFiles` in `quorum/log` implement it. The core appends, reads and truncates
directly, because these calls are short. They do not wait for an fsync, except for a truncation
(`Log.truncate_to`). Only a flush is an effect. A failed read or write raises an exception, and the
node stops.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from quorate.quorum.ids import EpochOffset
from quorate.quorum.log.batches.batch import BatchHeader, Placed
from quorate.quorum.seams import Buffer


class FollowedBatches(Protocol):
    """Checks and gets the batches that this node follows, apart from control batches."""

    def check(self, buffer: memoryview, position: int, header: BatchHeader) -> Any:
        """Raise an exception if no node could replay the batch at `position`. Return the object
        that `appended` gets."""

    def appended(self, checked: Sequence[Any]) -> None:
        """Note that the log has appended these checked batches, in this order."""


class AcceptedBatches:
    """Accepts every batch. Tests use it for logs that hold no metadata records."""

    def check(self, buffer: memoryview, position: int, header: BatchHeader) -> None:
        """Accept the batch."""

    def appended(self, checked: Sequence[None]) -> None:
        """Do nothing."""


class Epochs(Protocol):
    """The start offsets of the epochs of the log."""

    def end_offset_for(self, epoch: int, log_end: int) -> EpochOffset | None:
        """Return the largest epoch in the log that is at most `epoch`, and its end offset.

        Return None if `epoch` is after all epochs, and (`epoch`, log start offset) if it is before
        all.
        """


class RaftLog(Protocol):
    """The metadata log of this node."""

    @property
    def start_offset(self) -> int:
        """The first offset of the log."""

    @property
    def end_offset(self) -> int:
        """The offset of the next record."""

    @property
    def flushed_offset(self) -> int:
        """The offset up to which the log is durable."""

    @property
    def last_epoch(self) -> int:
        """The epoch of the last batch, or -1 if the log never had one."""

    @property
    def epochs(self) -> Epochs:
        """The start offsets of the epochs."""

    def append(
        self,
        data: Buffer,
        *,
        wall_ms: int,
        placed: Placed | None = None,
    ) -> None:
        """Append whole batches, to the page cache. Raise CorruptBatch or BrokenChain, and change
        nothing, if they do not continue the log.

        A caller that has checked their CRCs passes the position and header of each as `placed`."""

    def read(self, offset: int, max_bytes: int, *, end: int | None = None) -> Buffer:
        """Return whole batches below `end` (by default the log end), beginning with the one that
        holds `offset`.

        They have at most `max_bytes`, except that the first one is returned at any size. Raise
        OffsetOutOfRange, or CorruptLog if the disk does not return what was appended."""

    def truncate_to(self, offset: int) -> None:
        """Remove the batch that holds `offset` and everything after it. The log then ends at the
        start of that batch, which may be below `offset`. Do nothing if the log ends before."""

    def reset_to(self, offset: int, epoch: int) -> None:
        """Remove all records. The log continues at `offset`, and the epoch before it is `epoch`."""


class RaftSnapshots(Protocol):
    """The snapshots of this node. A snapshot is named by the epoch and the end offset of its
    records."""

    @property
    def earliest(self) -> EpochOffset | None:
        """The earliest snapshot, from which the log continues, or None."""

    @property
    def latest(self) -> EpochOffset | None:
        """The latest snapshot, or None."""

    def __contains__(self, snapshot: EpochOffset, /) -> bool:
        """Return True if this node has the snapshot."""

    def size_of(self, snapshot: EpochOffset) -> int:
        """Return the size of the snapshot in bytes."""

    def read(self, snapshot: EpochOffset, position: int, max_bytes: int) -> Buffer | None:
        """Return at most `max_bytes` of the snapshot from `position` on, or None if it is
        damaged."""

    def part_bytes(self, snapshot: EpochOffset) -> int:
        """Return the number of bytes of the snapshot that were received, also before a restart.
        Discard the received bytes of older snapshots."""

    def write_part(self, snapshot: EpochOffset, position: int, data: Buffer) -> None:
        """Write received bytes at `position`. They are not durable yet."""

    def drop_part(self, snapshot: EpochOffset) -> None:
        """Discard the received bytes."""

    def added(self, snapshot: EpochOffset, size_bytes: int) -> None:
        """Record that the snapshot is durable and whole."""

    def remove_before(self, offset: int) -> None:
        """Remove the snapshots that end before `offset`, the new start of the log."""
