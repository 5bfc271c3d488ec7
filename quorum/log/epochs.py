"""Where each leader epoch began in one log (KIP-101, KIP-279), and Kafka's file of it.

Invariant: epochs and start offsets both rise strictly. An entry says that its epoch's first
record has, or will have, that offset.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable

from quorate.quorum.ids import EpochOffset

NO_EPOCH = -1


class EpochCache:
    def __init__(self, end_offset: Callable[[], int], entries: Iterable[EpochOffset] = ()) -> None:
        self._end_offset = end_offset
        self._epochs: list[int] = []
        self._starts: list[int] = []
        self.changed = False
        """Since it was last written to its file."""
        for entry in entries:
            self.assign(entry.epoch, entry.offset)
        self.changed = False

    @property
    def latest(self) -> int:
        return self._epochs[-1] if self._epochs else NO_EPOCH

    @property
    def entries(self) -> list[EpochOffset]:
        return [EpochOffset(*each) for each in zip(self._epochs, self._starts, strict=True)]

    def assign(self, epoch: int, start_offset: int) -> None:
        """Later entries that contradict the new one are gone: they had no records, or lost them."""
        if epoch < 0 or start_offset < 0:
            raise ValueError(f"epoch {epoch} cannot start at offset {start_offset}")
        if self._epochs and epoch == self._epochs[-1] and start_offset >= self._starts[-1]:
            return
        while self._epochs and (self._epochs[-1] >= epoch or self._starts[-1] >= start_offset):
            self._pop()
        self._epochs.append(epoch)
        self._starts.append(start_offset)
        self.changed = True

    def end_offset_for(self, epoch: int) -> EpochOffset | None:
        """Where `epoch`, or the largest one below it, ended; None when that is not known here.

        The log end for the latest epoch; (epoch, first start) below the first; else the start of
        the next higher epoch, with the largest epoch that is not above the one asked for."""
        if epoch == NO_EPOCH or epoch > self.latest:
            return None
        if epoch == self.latest:
            return EpochOffset(epoch, self._end_offset())
        higher = bisect_right(self._epochs, epoch)
        floor = self._epochs[higher - 1] if higher else epoch
        return EpochOffset(floor, self._starts[higher])

    def epoch_at(self, offset: int) -> int:
        """The epoch of the record at `offset`; NO_EPOCH before the first entry."""
        index = bisect_right(self._starts, offset) - 1
        return self._epochs[index] if index >= 0 else NO_EPOCH

    def start_of(self, epoch: int) -> int | None:
        index = bisect_right(self._epochs, epoch) - 1
        if index < 0 or self._epochs[index] != epoch:
            return None
        return self._starts[index]

    def previous(self, epoch: int) -> int:
        """The largest epoch below `epoch`, or NO_EPOCH."""
        index = bisect_right(self._epochs, epoch - 1) - 1
        return self._epochs[index] if index >= 0 else NO_EPOCH

    def truncate_to(self, end_offset: int) -> None:
        while self._starts and self._starts[-1] >= end_offset:
            self._pop()
            self.changed = True

    def advance_start(self, start_offset: int) -> None:
        """The log begins at `start_offset` now: the epoch that holds there starts there."""
        index = bisect_right(self._starts, start_offset) - 1
        if index < 0 or (index == 0 and self._starts[0] == start_offset):
            return
        del self._epochs[:index], self._starts[:index]
        self._starts[0] = start_offset
        self.changed = True

    def clear(self) -> None:
        self.changed = self.changed or bool(self._epochs)
        self._epochs.clear()
        self._starts.clear()

    def _pop(self) -> None:
        self._epochs.pop()
        self._starts.pop()
