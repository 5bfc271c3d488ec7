"""Words and numbers as the report's page shows them, and the history that it shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from quorate.quorum.metadata.causes import describe

Row = Mapping[str, Any]
NO_LEADER = -1
RESOURCES = {
    2: "topic",
    4: "broker",
    8: "broker-logger",
    16: "client-metrics",
    32: "group",
}
"""Kafka's ConfigResource types by their numbers."""
MAX_LANES = 1_000
MAX_EVENTS = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The tables' rows, in order of their offsets; times in ms since 1970."""

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
    return "The log does not say why." if cause == "unknown" else describe(cause)


def topic(row: Row) -> str:
    """A topic that was created before the log begins has no name in it."""
    name: str = row["topic"] or row["topic_id"]
    return name


def cut(count: int, maximum: int, things: str, which: str = "the first ") -> str:
    if count <= maximum:
        return ""
    return f"<p class=soft>Shown: {which}{maximum:,} of {count:,} {things}.</p>"


def clock(at_ms: int) -> str:
    moment = datetime.fromtimestamp(at_ms / 1000, UTC)
    return f"{moment:%Y-%m-%d %H:%M:%S}.{at_ms % 1000:03d}"


def span(duration_ms: int) -> str:
    if duration_ms < 1_000:
        return f"{duration_ms} ms"
    seconds = duration_ms / 1000
    if seconds < 60:
        return f"{seconds:.3g} s"
    minutes, seconds = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {seconds} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours < 48 else f"{hours // 24} d {hours % 24} h"
