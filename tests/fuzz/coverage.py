"""The lines that inputs reached, from sys.monitoring (Python 3.12) or from sys.settrace.

Only lines of the program count, each once. With sys.monitoring a line that was seen costs nothing
more.
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
                self.seen.add((frame.f_code, frame.f_lineno))
            return lines

        def calls(frame: FrameType, event: str, _: Any) -> Any:
            return lines if self.is_ours(frame.f_code) else None

        before = sys.gettrace()
        sys.settrace(calls)
        try:
            yield
        finally:
            sys.settrace(before)
