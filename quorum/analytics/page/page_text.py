"""The rows that the page of `quorate history report` shows, and functions that phrase them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from quorate.quorum.metadata.causes import describe

Row = Mapping[str, Any]
MAX_LANES = 1_000
"""Maximum number of partitions in the timeline and in the table of availability."""
MAX_BOXES = 30_000
"""About the maximum number of spells in the timeline. Every lane shows at least 20."""
MAX_EVENTS = 2_000
"""Maximum number of rows in the table of events."""
MAX_WORST = 200
"""Maximum number of rows in the tables of outages, of sessions and of warnings."""
INTERNAL = "__"
"""The prefix of the names of internal topics."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The key figures, which count all rows in the scope. Durations are in ms.

    A leader change is a new leader epoch of a partition that existed before. `outages` counts the
    times in which acks=all failed."""

    records: int
    partitions: int
    leader_changes: int
    isr_shrinks: int
    partitions_without_leader: int
    longest_without_leader_ms: int
    outages: int
    sessions: int
    terms: int
    errors: int
    notes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The rows to show. Times are in ms since 1970.

    `start_ms` and `end_ms` are the shown range. `scope` says in words what is left out by request,
    and `cluster_id` is None if the directory does not name it. `lanes` are the partitions with the
    worst first, each with all its figures; `leadership` and `isr` are spells of these partitions.
    `new_leaders` and `new_isrs` are the newest changes of all partitions, `outages` the longest
    times in which acks=all failed, and `sessions` and `quorum` the newest ones."""

    source: str
    cluster_id: str | None
    scope: str
    start_ms: int
    end_ms: int
    figures: Figures
    lanes: Sequence[Row] = ()
    leadership: Sequence[Row] = ()
    isr: Sequence[Row] = ()
    new_leaders: Sequence[Row] = ()
    new_isrs: Sequence[Row] = ()
    outages: Sequence[Row] = ()
    sessions: Sequence[Row] = ()
    quorum: Sequence[Row] = ()
    warnings: Sequence[Row] = field(default_factory=tuple)


def internal_last(lanes: Sequence[Row]) -> list[Row]:
    """Return the lanes in the same order, but internal topics after all others."""
    return sorted(lanes, key=lambda row: topic(row).startswith(INTERNAL))


def why(cause: str) -> str:
    """Return a sentence for a row's cause, which is a stored cause (`causes.py`) or "unknown"."""
    return "The log does not say why." if cause == "unknown" else describe(cause)


def topic(row: Row) -> str:
    """Return the topic's name, or its id if the topic was created before the log begins."""
    name: str = row["topic"] or row["topic_id"]
    return name


def named(row: Row) -> str:
    """Return TOPIC-PARTITION."""
    return f"{topic(row)}-{row['partition']}"


def cut(shown: int, count: int, things: str, which: str) -> str:
    """Return an HTML note that only `shown` of `count` things are shown, or "" if all are shown.

    `things` is their plural noun. `which` says which of them are shown."""
    if count <= shown:
        return ""
    return f"<p class=soft>Shown: the {which} {shown:,} of {count:,} {things}.</p>"
