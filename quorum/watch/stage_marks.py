"""The times at which one stage of this node reached offsets of the metadata log.

A stage is, for example, the replay: it has reached an offset when all records below the offset are
replayed. A stage only moves forward, so one mark per movement gives the time of every record that
the movement covered. A mark costs the same for one record and for a thousand.

Arrays hold the marks, and no objects. A small object that stays keeps the arena of 1 MiB in which
Python has put it. Marks of the time of a flood therefore kept the memory of the flood.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right

MAX_MARKS = 2_000
"""Maximum number of marks of one stage. Each further mark replaces the oldest one."""


class StageMarks:
    """The newest marks of one stage. The node's event loop owns it.

    Invariant: the offsets of the marks rise, and their times do not fall."""

    def __init__(self) -> None:
        self._offsets = array("q")
        self._times_ms = array("q")
        self._unknown_below = 0  # the offset up to which the marks were removed

    @property
    def end_offset(self) -> int:
        """Return the offset that the stage has reached: all records below it have passed."""
        return self._offsets[-1] if self._offsets else 0

    def reach(self, end_offset: int, now_ms: int) -> None:
        """Note that all records below `end_offset` have passed the stage at `now_ms`, a monotonic
        time. Ignore an offset that the stage has reached before."""
        offsets, times_ms = self._offsets, self._times_ms
        if offsets:
            if end_offset <= offsets[-1]:
                return
            if times_ms[-1] == now_ms:
                offsets[-1] = end_offset
                return
            if len(offsets) >= MAX_MARKS:
                self._unknown_below = offsets[0]
                del offsets[0], times_ms[0]
        offsets.append(end_offset)
        times_ms.append(now_ms)

    def since(self, offset: int) -> list[tuple[int, int]]:
        """Return the marks above `offset`, each (end offset, monotonic time in ms)."""
        first = bisect_right(self._offsets, offset)
        return list(zip(self._offsets[first:], self._times_ms[first:], strict=True))

    def time_of(self, offset: int) -> int | None:
        """Return the monotonic time in ms at which the record at `offset` passed the stage.

        Return None if it has not passed, or if its mark was removed."""
        if not self._unknown_below <= offset < self.end_offset:
            return None
        return self._times_ms[bisect_right(self._offsets, offset)]
