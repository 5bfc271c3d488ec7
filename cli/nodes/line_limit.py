"""A bound on similar log lines, so that no peer can fill a disk by provoking them.

Most lines about a peer are written once per connection, and a peer can open many connections. Lines
with the same logger, the same text before the arguments and the same event are one kind. At most
MAX_LINES of a kind are written in each whole second of the clock. The next line of the kind that is
written reports the number of suppressed lines."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

MAX_LINES = 20
"""The most lines of one kind in one second."""
UNLIMITED = frozenset({"state.change"})
"""Loggers whose lines have no bound. They write only if a key switches them on, one line for each
change of a partition in the metadata log, and no client can cause more changes than it commits."""
MAX_KINDS = 1000
"""The most kinds that are counted at the same time."""


class _Kind:
    __slots__ = ("left_out", "passed", "second")

    def __init__(self, second: int) -> None:
        self.second = second
        self.passed = 0
        self.left_out = 0


class LineLimit(logging.Filter):
    """A logging filter that limits the lines of each kind.

    The number of kinds is that of the logging calls, as long as their texts are constant. A library
    that formats its text before the call adds a kind for each text. Beyond MAX_KINDS, each new kind
    replaces the one that is counted for the longest time, whose count starts again from 0."""

    def __init__(self, clock_s: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock_s = clock_s
        self._kinds: dict[tuple[str, object, object], _Kind] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return True if the line may be written.

        If lines of its kind were suppressed, their number is added to the text of `record`."""
        if record.name in UNLIMITED:
            return True
        second = int(self._clock_s())
        key = (record.name, record.msg, getattr(record, "event", None))
        kind = self._kinds.get(key)
        if kind is None:
            if len(self._kinds) >= MAX_KINDS:
                del self._kinds[next(iter(self._kinds))]
            kind = self._kinds[key] = _Kind(second)
        if kind.second != second:
            kind.second, kind.passed = second, 0
        if kind.passed >= MAX_LINES:
            kind.left_out += 1
            return False
        kind.passed += 1
        if kind.left_out:
            record.msg = f"{record.getMessage()} ({kind.left_out} lines like it were left out)"
            record.args = ()
            kind.left_out = 0
        return True
