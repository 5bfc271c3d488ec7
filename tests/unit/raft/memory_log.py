"""A log in memory with the contract of `RaftLog`."""

from __future__ import annotations

from quorate.quorum.ids import EpochOffset
from quorate.quorum.log.batches.batch import batches, records_of
from quorate.quorum.log.segments.epochs import NO_EPOCH
from quorate.quorum.raft.log_view import Epochs
from tests.unit.log.memory_log import MemoryLog


class MemoryMetadataLog(MemoryLog):
    """The metadata log as a list. A crash removes the batches that were not flushed.

    It differs from the `MemoryPartitionLog` of replicas in two points. It finds epochs by a search
    of all batches, independently of the real epoch cache. It knows which batches are flushed,
    because a voter acknowledges only those.
    `truncations` lists the offsets of all truncations.
    """

    truncations: list[int]

    def __init__(self) -> None:
        super().__init__()
        self._flushed_offset = 0
        self.truncations = []

    @property
    def flushed_offset(self) -> int:
        return self._flushed_offset

    @property
    def epochs(self) -> Epochs:
        return self

    def end_offset_for(self, epoch: int, log_end: int) -> EpochOffset | None:
        """Return the largest epoch of the log up to `epoch`, and its end offset."""
        if epoch == NO_EPOCH or epoch > self.last_epoch:
            return None
        below = [batch for batch in self.batches if batch.epoch <= epoch]
        if not below:
            return EpochOffset(epoch, self.start.offset)
        return EpochOffset(below[-1].epoch, below[-1].next_offset)

    def truncate_to(self, offset: int) -> None:
        """Remove the batches that end above `offset`, and list the truncation."""
        self.truncations.append(offset)
        super().truncate_to(offset)
        self._flushed_offset = min(self.flushed_offset, offset)

    def reset_to(self, offset: int, epoch: int = NO_EPOCH) -> None:
        """Remove all batches, and continue at `offset` without any flushed record."""
        super().reset_to(offset, epoch)
        self._flushed_offset = 0

    def cut_head(self, offset: int) -> None:
        """Remove the batches below `offset`, because a snapshot replaces them."""
        epoch = max(each.epoch for each in self.batches if each.next_offset <= offset)
        self.batches[:] = [each for each in self.batches if each.base_offset >= offset]
        self.start = EpochOffset(epoch, offset)

    def flush(self, offset: int) -> None:
        """Make the batches below `offset` durable."""
        self._flushed_offset = max(self.flushed_offset, min(offset, self.end_offset))

    def crash(self) -> None:
        """Remove the batches that were not flushed."""
        self.forget_from(self.flushed_offset)

    def forget_from(self, offset: int) -> None:
        """Remove batches as a disk does that has lied about a flush."""
        self.batches[:] = [batch for batch in self.batches if batch.next_offset <= offset]
        self._flushed_offset = min(self.flushed_offset, offset)

    def only_in_page_cache_from(self, offset: int) -> None:
        """Take back the flush from `offset` on: a process died, and its page cache is left."""
        self._flushed_offset = offset

    def entries(self, end: int | None = None) -> list[tuple[int, bytes]]:
        """Return the epoch and the value of each record below `end`, by offset."""
        return [
            (batch.epoch, bytes(record.value or b""))
            for batch in self.batches
            if end is None or batch.next_offset <= end
            for position, header in batches(batch.data)
            for record in records_of(batch.data, position, header)
        ]
