"""The progress of a run, as JSON for `quorate console`. Pure.

The checks need all observations of a run. A run that has not ended therefore has only its problems
so far."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

SCHEMA_VERSION = 1
MAX_EVENTS = 12
"""The number of the newest events that are kept."""
MAX_LINES = 50
"""The most problems, and the most checks, that are kept."""
MAX_LINE_CHARS = 500
"""The most characters of one of these lines."""
SILENT_MS = 10_000
"""A run that has written nothing for this long, and has not ended, is silent."""
RUNNING, SILENT = "running", "silent"
KEYS = {
    "schema_version": int,
    "scenario": str,
    "title": str,
    "state": str,
    "written_wall_ms": int,
    "ms": int,
    "step": str,
    "acknowledged": int,
    "events": list,
    "problems": list,
    "checks": list,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The progress of a run at the wall time `written_wall_ms`.

    `state` is RUNNING, or the verdict. `ms` is the time since the start. `events` are the newest
    ones. `checks` are the lines of the checks, those that are bad first."""

    scenario: str
    title: str
    state: str = RUNNING
    written_wall_ms: int = 0
    ms: int = 0
    step: str = ""
    acknowledged: int = 0
    events: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    schema_version: int = SCHEMA_VERSION

    def as_text(self) -> str:
        """Return the progress as JSON, with KEYS."""
        return json.dumps(asdict(self))

    def now(self, wall_ms: int) -> dict[str, Any]:
        """Return the progress as JSON values, with SILENT as the state of a silent run."""
        silent = self.state == RUNNING and wall_ms - self.written_wall_ms > SILENT_MS
        return {**asdict(self), "state": SILENT if silent else self.state}


def clipped(lines: Iterable[str]) -> tuple[str, ...]:
    """Return the first MAX_LINES lines, each with MAX_LINE_CHARS at most."""
    return tuple(each[:MAX_LINE_CHARS] for each in lines)[:MAX_LINES]


def progress_of(text: str) -> Progress:
    """Return the progress in a text of `as_text`. Raise ValueError if the text is none."""
    try:
        found = json.loads(text)
    except RecursionError:
        raise ValueError("its lists are nested too deeply") from None
    if not isinstance(found, dict) or found.get("schema_version") != SCHEMA_VERSION:
        raise ValueError(f"it is no progress of a run in version {SCHEMA_VERSION}")
    if {name: type(value) for name, value in found.items()} != KEYS:
        raise ValueError("a key is missing or unknown, or a value has another type")
    for name, value in found.items():
        if isinstance(value, list):
            if not all(isinstance(each, str) for each in value):
                raise ValueError(f"{name}: a value is no text")
            found[name] = tuple(value)
    return Progress(**found)
