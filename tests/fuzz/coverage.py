"""The lines that inputs reached, from sys.monitoring (Python 3.12) or from sys.settrace.

Only lines of the program count, each once. With sys.monitoring a line that was seen costs nothing
more. With sys.settrace a function costs nothing more after all of its lines were seen.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import quorate.quorum

ROOTS = tuple(
    str(Path(next(iter(quorate.quorum.__path__))).resolve().parent / each)
    for each in ("quorum", "broker", "config", "cli")
)


class Coverage:
    """`new` grows with every line that is reached for the first time."""

    def __init__(self) -> None:
        self.seen: set[tuple[CodeType, int]] = set()
        self._ours: dict[CodeType, bool] = {}
        self._unseen: dict[CodeType, set[int]] = {}
        """The lines of each function that was called, without those in `seen`."""

    def __len__(self) -> int:
        return len(self.seen)

    def is_ours(self, code: CodeType) -> bool:
        known = self._ours.get(code)
        if known is None:
            path = str(Path(code.co_filename).resolve())
            known = self._ours[code] = path.startswith(ROOTS)
        return known

    @contextmanager
    def watching(self) -> Iterator[None]:
        if sys.version_info >= (3, 12):
            with self._monitored():
                yield
        else:
            with self._traced():
                yield

    @contextmanager
    def _monitored(self) -> Iterator[None]:
        monitoring: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
        tool = monitoring.COVERAGE_ID

        def line(code: CodeType, number: int) -> Any:
            if self.is_ours(code):
                self.seen.add((code, number))
            return monitoring.DISABLE

        monitoring.use_tool_id(tool, "fuzz")
        monitoring.restart_events()
        monitoring.register_callback(tool, monitoring.events.LINE, line)
        monitoring.set_events(tool, monitoring.events.LINE)
        try:
            yield
        finally:
            monitoring.set_events(tool, 0)
            monitoring.register_callback(tool, monitoring.events.LINE, None)
            monitoring.free_tool_id(tool)

    @contextmanager
    def _traced(self) -> Iterator[None]:
        def lines(frame: FrameType, event: str, _: Any) -> Any:
            if event == "line":
                line = frame.f_lineno
                unseen = self._unseen[frame.f_code]
                if line in unseen:
                    unseen.discard(line)
                    self.seen.add((frame.f_code, line))
            return lines

        def calls(frame: FrameType, event: str, _: Any) -> Any:
            unseen = self._unseen.get(frame.f_code)
            if unseen is None:
                unseen = self._unseen[frame.f_code] = self._lines_of(frame.f_code)
            return lines if unseen else None

        before = sys.gettrace()
        sys.settrace(calls)
        try:
            yield
        finally:
            sys.settrace(before)

    def _lines_of(self, code: CodeType) -> set[int]:
        """Return the lines of a function that an event can report, none of another program's."""
        if not self.is_ours(code):
            return set()
        lines = {line for _, _, line in code.co_lines() if line is not None}
        return lines - {code.co_firstlineno} if len(lines) > 1 else lines
