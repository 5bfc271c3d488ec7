"""The rows that the page of `quorate history report` shows, and functions that phrase them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from quorate.quorum.metadata.causes import describe

Row = Mapping[str, Any]
MAX_LANES = 1_000
"""Maximum number of partitions in the timeline and in the table of availability."""
MAX_EVENTS = 2_000
"""Maximum number of rows in the table of events."""


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The rows of the tables, each in its order of `tables.TABLES`. Times are in ms since 1970.

    `start_ms` and `end_ms` are the earliest and the latest timestamp of the log. `records` counts
    its records."""

    source: str
    start_ms: int
    end_ms: int
    records: int
    leadership: Sequence[Row]
    isr: Sequence[Row]
    sessions: Sequence[Row]
    availability: Sequence[Row]
    quorum: Sequence[Row]


def why(cause: str) -> str:
    """Return a sentence for a row's cause, which is a stored cause (`causes.py`) or "unknown"."""
    return "The log does not say why." if cause == "unknown" else describe(cause)


def topic(row: Row) -> str:
    """Return the topic's name, or its id if the topic was created before the log begins."""
    name: str = row["topic"] or row["topic_id"]
    return name


def cut(count: int, maximum: int, things: str, which: str = "the first ") -> str:
    """Return an HTML note that only `maximum` of `count` things are shown, or "" if all are shown.

    `things` is their plural noun. `which` says which of them are shown."""
    if count <= maximum:
        return ""
    return f"<p class=soft>Shown: {which}{maximum:,} of {count:,} {things}.</p>"
