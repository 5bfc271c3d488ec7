"""The times at which one stage of this node reached offsets of the metadata log.

A stage is, for example, the replay: it has reached an offset when all records below the offset are
replayed. A stage only moves forward, so one mark per movement gives the time of every record that
the movement covered. A mark costs the same for one record and for a thousand.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque

MAX_MARKS = 2_000
"""Maximum number of marks of one stage. Each further mark replaces the oldest one."""


class StageMarks:
    """The newest marks of one stage. The node's event loop owns it.

    Invariant: the offsets of the marks rise, and their times do not fall."""

    def __init__(self) -> None:
        self._marks: deque[tuple[int, int]] = deque()
        self._unknown_below = 0  # the offset up to which the marks were removed

    @property
    def end_offset(self) -> int:
        """Return the offset that the stage has reached: all records below it have passed."""
        return self._marks[-1][0] if self._marks else 0

    def reach(self, end_offset: int, now_ms: int) -> None:
        """Note that all records below `end_offset` have passed the stage at `now_ms`, a monotonic
        time. Ignore an offset that the stage has reached before."""
        marks = self._marks
        if marks:
            last_offset, last_ms = marks[-1]
            if end_offset <= last_offset:
                return
            if last_ms == now_ms:
                marks.pop()
            elif len(marks) >= MAX_MARKS:
                self._unknown_below, _ = marks.popleft()
        marks.append((end_offset, now_ms))

    def since(self, offset: int) -> list[tuple[int, int]]:
        """Return the marks above `offset`, each (end offset, monotonic time in ms)."""
        marks = list(self._marks)
        return marks[bisect_right(marks, offset, key=lambda mark: mark[0]) :]

    def time_of(self, offset: int) -> int | None:
        """Return the monotonic time in ms at which the record at `offset` passed the stage.

        Return None if it has not passed, or if its mark was removed."""
        if not self._unknown_below <= offset < self.end_offset:
            return None
        marks = self._marks
        return marks[bisect_right(marks, offset, key=lambda mark: mark[0])][1]
