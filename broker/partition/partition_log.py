"""The operations of `quorum/log` that a partition replica uses. Tests replace the log by one in
memory.
"""

from __future__ import annotations

from typing import Protocol

from quorate.broker.partition.truncation import Epochs
from quorate.quorum.log.batches.batch import Placed
from quorate.quorum.seams import Buffer


class PartitionLog(Protocol):
    """A log of batches. `quorate.quorum.log.log.Log` documents the contract of each operation."""

    @property
    def start_offset(self) -> int:
        """Return the first offset that readers may ask for."""
        ...

    @property
    def end_offset(self) -> int:
        """Return the offset that the next record gets."""
        ...

    @property
    def last_epoch(self) -> int:
        """Return the latest leader epoch of the log, or -1."""
        ...

    @property
    def epochs(self) -> Epochs:
        """Return the start offsets of the leader epochs."""
        ...

    def append(
        self,
        data: Buffer,
        *,
        wall_ms: int,
        placed: Placed | None = None,
        gaps: bool = False,
    ) -> None:
        """Append whole batches that continue the log, to the page cache. `placed` has the headers
        of all batches, if the caller has checked their CRCs. With `gaps`, offsets may be missing
        before a batch. Raise CorruptBatch, BrokenChain or OSError; the log has the same batches as
        before then."""
        ...

    def read(self, offset: int, max_bytes: int, *, end: int | None = None) -> Buffer:
        """Return whole batches from the one that holds `offset`, all below `end` (by default the
        log end). The first one is returned even if it is larger than `max_bytes`."""
        ...

    def truncate_to(self, offset: int) -> None:
        """Remove the records at and above `offset`, and the whole batch that holds `offset`. Raise
        OffsetOutOfRange if `offset` is below the log start."""
        ...

    def reset_to(self, offset: int) -> None:
        """Remove all records and begin again at `offset`."""
        ...

    def assign_epoch(self, epoch: int) -> None:
        """Let `epoch` start at the log end."""
        ...

    def advance_start(self, offset: int) -> None:
        """Move the log start up to `offset`; a lower one changes nothing. Raise OffsetOutOfRange if
        `offset` is above the log end."""
        ...
