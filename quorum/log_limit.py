"""Limits the log lines that a peer can provoke.

One line of each kind passes in an interval. The next line of the kind that passes has the count of
the lines that were left out. The number of kinds is bounded, because a peer may choose the kind.
"""

from __future__ import annotations

from collections.abc import Hashable

from quorate.quorum.seams import Clock

INTERVAL_MS = 10_000
MAX_KINDS = 256
"""Maximum number of kinds with a count. The kind whose last line is oldest is dropped."""


class LogLimit:
    """The counts of one logger's lines by kind. Owned by one thread."""

    def __init__(self, clock: Clock, interval_ms: int = INTERVAL_MS) -> None:
        self._clock = clock
        self._interval_ms = interval_ms
        self._kinds: dict[Hashable, tuple[int, int]] = {}  # -> (time of the line, left out since)

    def passes(self, kind: Hashable) -> str | None:
        """Return None if a line of `kind` must not be written now.

        Otherwise return the text to append to the line: empty, or the count of lines left out."""
        now_ms = self._clock.now_ms()
        written_ms, left_out = self._kinds.get(kind, (now_ms, 0))
        if not self.is_due(kind):
            self._kinds[kind] = (written_ms, left_out + 1)
            return None
        self._kinds.pop(kind, None)  # the newest kind is last
        if len(self._kinds) >= MAX_KINDS:
            del self._kinds[next(iter(self._kinds))]
        self._kinds[kind] = (now_ms, 0)
        return f" ({left_out} more like it were not logged)" if left_out else ""

    def is_due(self, kind: Hashable) -> bool:
        """Return True if a line of `kind` may be written now."""
        known = self._kinds.get(kind)
        return known is None or self._clock.now_ms() - known[0] >= self._interval_ms
