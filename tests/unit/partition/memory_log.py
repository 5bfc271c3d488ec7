"""A log in memory with the contract of `PartitionLog`."""

from __future__ import annotations

from quorate.quorum.ids import EpochOffset
from quorate.quorum.log.batches.batch import Placed
from quorate.quorum.log.segments.epochs import NO_EPOCH, EpochCache
from quorate.quorum.seams import Buffer
from tests.unit.log.memory_log import Batch, MemoryLog


class MemoryPartitionLog(MemoryLog):
    """A partition's log as a list.

    It differs from the `MemoryMetadataLog` of Raft in two points. It uses the real epoch cache,
    because a leader records its epoch before it has records (`assign_epoch`). It knows no flush,
    because a partition acknowledges records from the page caches of its ISR.
    """

    def __init__(self) -> None:
        super().__init__()
        self.epochs = EpochCache()

    @property
    def last_epoch(self) -> int:
        return self.epochs.latest

    def append(
        self,
        data: Buffer,
        *,
        wall_ms: int,
        placed: Placed | None = None,
        gaps: bool = False,
    ) -> None:
        """Append whole batches. Ignore `placed`, which spares the real log the CRCs."""
        super().append(data, wall_ms=wall_ms)

    def add(self, batch: Batch) -> None:
        """Add a batch that continues the log, and its epoch."""
        self.epochs.assign(batch.epoch, batch.base_offset)
        super().add(batch)

    def truncate_to(self, offset: int) -> None:
        """Remove the batches that end above `offset`, and the epochs that start there or above."""
        self.epochs.truncate_to(offset)
        if offset < self.end_offset:
            super().truncate_to(offset)
            if self.end_offset < self.start_offset:  # Only batches below the log start are left.
                self.batches.clear()
            self.epochs.truncate_to(self.end_offset)

    def reset_to(self, offset: int, epoch: int = NO_EPOCH) -> None:
        """Remove all batches and epochs, and continue at `offset`."""
        super().reset_to(offset, epoch)
        self.epochs.clear()

    def advance_start(self, offset: int) -> None:
        """Raise the log start offset to `offset`; a lower one changes nothing."""
        self.start = EpochOffset(NO_EPOCH, max(self.start_offset, offset))

    def assign_epoch(self, epoch: int) -> None:
        """Record that this replica leads `epoch`, whose first offset is the log end."""
        self.epochs.assign(epoch, self.end_offset)
