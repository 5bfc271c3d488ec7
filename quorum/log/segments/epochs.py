"""The start offset of each leader epoch of one log (KIP-101, KIP-279): Kafka's
LeaderEpochFileCache.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from quorate.quorum.ids import EpochOffset

NO_EPOCH = -1
"""The epoch of a log without epochs."""


class EpochCache:
    """The leader epochs of one log, each with its start offset.

    Invariant: epochs and start offsets both rise strictly. An entry says that the first record of
    its epoch has, or will have, that offset. Used in the log's thread only.
    """

    def __init__(self, entries: Iterable[EpochOffset] = ()) -> None:
        """Start with these entries."""
        self._epochs: list[int] = []
        self._starts: list[int] = []
        self.changed = False
        """True if the entries changed since they were last written to the leader epoch checkpoint.
        """
        for entry in entries:
            self.assign(entry.epoch, entry.offset)
        self.changed = False

    @property
    def latest(self) -> int:
        """The highest leader epoch, or NO_EPOCH if there is none."""
        return self._epochs[-1] if self._epochs else NO_EPOCH

    @property
    def entries(self) -> list[EpochOffset]:
        """All entries, lowest epoch first."""
        return [EpochOffset(*each) for each in zip(self._epochs, self._starts, strict=True)]

    @property
    def first(self) -> EpochOffset | None:
        """Return the first entry, or None if the cache is empty."""
        return EpochOffset(self._epochs[0], self._starts[0]) if self._epochs else None

    def assign(self, epoch: int, start_offset: int) -> None:
        """Record that `epoch` starts at `start_offset`.

        If `epoch` is the latest one and starts at or below `start_offset` already, nothing changes.
        Entries that contradict the new one are removed: those of the same or a higher epoch, or of
        the same or a higher offset. Their epochs had no records, or lost them. Raise ValueError if
        a number is negative."""
        if epoch < 0 or start_offset < 0:
            raise ValueError(f"epoch {epoch} cannot start at offset {start_offset}")
        if self._epochs and epoch == self._epochs[-1] and start_offset >= self._starts[-1]:
            return
        while self._epochs and (self._epochs[-1] >= epoch or self._starts[-1] >= start_offset):
            self._pop()
        assert not self._epochs or (self._epochs[-1] < epoch and self._starts[-1] < start_offset)
        self._epochs.append(epoch)
        self._starts.append(start_offset)
        self.changed = True

    def end_offset_for(self, epoch: int, log_end: int) -> EpochOffset | None:
        """Return the largest epoch up to `epoch` that the log has, and the offset at which it
        ended.

        For the latest epoch that is `log_end`, otherwise the start of the next higher epoch. For
        an epoch below the first one, the result is `epoch` itself and the first start offset.
        Return None if `epoch` is NO_EPOCH or above the latest epoch."""
        if epoch == NO_EPOCH or epoch > self.latest:
            return None
        if epoch == self.latest:
            return EpochOffset(epoch, log_end)
        higher = bisect_right(self._epochs, epoch)
        floor = self._epochs[higher - 1] if higher else epoch
        return EpochOffset(floor, self._starts[higher])

    def epoch_at(self, offset: int) -> int:
        """Return the epoch of the record at `offset`, or NO_EPOCH if `offset` lies below the first
        entry."""
        index = bisect_right(self._starts, offset) - 1
        return self._epochs[index] if index >= 0 else NO_EPOCH

    def start_of(self, epoch: int) -> int | None:
        """Return the start offset of `epoch`, or None if the log has no such epoch."""
        index = bisect_right(self._epochs, epoch) - 1
        if index < 0 or self._epochs[index] != epoch:
            return None
        return self._starts[index]

    def previous(self, epoch: int) -> int:
        """Return the largest epoch below `epoch`, or NO_EPOCH if there is none."""
        index = bisect_right(self._epochs, epoch - 1) - 1
        return self._epochs[index] if index >= 0 else NO_EPOCH

    def truncate_to(self, end_offset: int) -> None:
        """Remove the epochs that start at `end_offset` or above it, because the log is truncated
        there."""
        while self._starts and self._starts[-1] >= end_offset:
            self._pop()
            self.changed = True
        assert len(self._epochs) == len(self._starts)

    def advance_start(self, start_offset: int) -> None:
        """Raise the start of the log: the epoch of `start_offset` starts there, earlier ones are
        removed. A start at or below the first entry changes nothing."""
        index = bisect_right(self._starts, start_offset) - 1
        if index < 0 or (index == 0 and self._starts[0] == start_offset):
            return
        del self._epochs[:index], self._starts[:index]
        self._starts[0] = start_offset
        self.changed = True
        assert len(self._starts) == 1 or start_offset < self._starts[1]

    def clear(self) -> None:
        """Remove all entries."""
        self.changed = self.changed or bool(self._epochs)
        self._epochs.clear()
        self._starts.clear()

    def _pop(self) -> None:
        self._epochs.pop()
        self._starts.pop()
