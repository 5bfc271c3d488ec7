"""Writes why a node waits: the reasons why it is not ready, and for how long.

The first line comes FIRST_MS after the reasons began. The pause before each next line doubles, up
to LONGEST_PAUSE_MS, because an outage may last for days. One line reports the end of the wait, if
its beginning was reported. The reasons are those of /readyz."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from quorate.quorum.seams import Clock, Timer

CHECK_MS = 1_000
FIRST_MS = 3_000
LONGEST_PAUSE_MS = 60_000
MAX_REASONS = 5
"""Maximum number of reasons that a line names."""

logger = logging.getLogger("quorate.node")


class WaitingLog:
    """The present wait of one node. Owned by its event loop. It checks every CHECK_MS."""

    def __init__(self, clock: Clock, reasons: Callable[[], Sequence[str]]) -> None:
        """`reasons` returns the reasons why the node is not ready: none if it is."""
        self._clock = clock
        self._reasons = reasons
        self._since_ms: int | None = None
        self._next_ms = 0
        self._pause_ms = FIRST_MS
        self._written = False
        self._timer: Timer | None = None

    def start(self) -> None:
        """Begin to check."""
        self._timer = self._clock.call_later(CHECK_MS, self._check)

    def close(self) -> None:
        """Stop. It may be called again."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check(self) -> None:
        self._timer = self._clock.call_later(CHECK_MS, self._check)
        now_ms, reasons = self._clock.now_ms(), self._reasons()
        if not reasons:
            self._end(now_ms)
        elif self._since_ms is None:
            self._since_ms, self._next_ms, self._pause_ms = now_ms, now_ms + FIRST_MS, FIRST_MS
        elif now_ms >= self._next_ms:
            self._next_ms = now_ms + self._pause_ms
            self._pause_ms = min(2 * self._pause_ms, LONGEST_PAUSE_MS)
            self._written = True
            logger.warning(
                "not ready for %d s: %s",
                (now_ms - self._since_ms) // 1000,
                joined(reasons),
                extra={"event": "not-ready"},
            )

    def _end(self, now_ms: int) -> None:
        if self._since_ms is not None and self._written:
            logger.info(
                "ready after %d s", (now_ms - self._since_ms) // 1000, extra={"event": "ready"}
            )
        self._since_ms, self._written = None, False


def joined(reasons: Sequence[str]) -> str:
    """Return the first MAX_REASONS reasons as one text."""
    more = f"; and {len(reasons) - MAX_REASONS} more" if len(reasons) > MAX_REASONS else ""
    return "; ".join(reasons[:MAX_REASONS]) + more
