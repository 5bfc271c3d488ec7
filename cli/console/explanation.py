"""The explanation of a partition, a topic, a broker or the quorum: its state, and what led to it.

The events are those of the timeline, newest first. All functions are pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from quorate.cli.console.cluster_tables import ClusterTables
from quorate.cli.console.views.change_events import QUORUM
from quorate.cli.console.views.change_rows import IN_FLIGHT
from quorate.cli.console.views.table import Row, Table, Value

MAX_EVENTS = 200
"""The most events of one explanation."""
MAX_SUBJECT_CHARS = 300
"""The most characters of a subject. A topic's name has 249 at most."""
SHOWN = ("time", "offset", "leader", "what", "why")
"""The columns of the timeline that an explanation has."""


def explanation(tables: ClusterTables, subject: str) -> dict[str, Any]:
    """Return the explanation of a subject as JSON values.

    `subject` is "quorum", "broker 4", "topic orders", or the name of a partition, "orders-3"
    (`Event.subject`). One that does not exist has neither a state nor events. `now` has the names
    and values of the state. `missing` is True if it has none because it does not exist. `in_flight`
    has a sentence for each change that a node delays, and `total` is the number of all events that
    are known."""
    timeline = tables.tables["timeline"]
    concerns = concern_of(timeline.columns, subject)
    found = [row for row in timeline.rows if concerns(row)]
    now = state_of(tables, subject)
    places = [timeline.columns.index(name) for name in SHOWN]
    return {
        "subject": subject,
        "now": now,
        "missing": not now and row_of(subject) is not None,
        "in_flight": list(islice(in_flight(tables.tables["changes"], subject), MAX_EVENTS)),
        "columns": SHOWN,
        "events": [[row[place] for place in places] for row in islice(found, MAX_EVENTS)],
        "total": len(found),
        "note": timeline.note,
    }


def concern_of(columns: Sequence[str], subject: str) -> Callable[[Row], bool]:
    """Return the function that returns True if a row of the timeline concerns the subject.

    An event of a partition concerns its topic, and the brokers that it names."""
    subjects, brokers = columns.index("subject"), columns.index("brokers")
    kind, _, name = subject.partition(" ")
    if kind == "broker" and name.isdecimal() and len(name) < 11:
        broker = int(name)
        return lambda row: row[subjects] == subject or broker in _ids(row[brokers])
    if kind == "topic":
        return lambda row: row[subjects] == subject or str(row[subjects]).rpartition("-")[0] == name
    return lambda row: row[subjects] == subject


def _ids(value: Value) -> tuple[int, ...]:
    return value if isinstance(value, tuple) else ()


def in_flight(changes: Table, subject: str) -> Iterator[str]:
    """Yield a sentence for each change of the subject that a node delays. `changes` are the rows of
    `change_rows`. Those of a broker are the ones that this broker delays."""
    for offset, topic, number, state, change, _, took, waits in changes.rows:
        concerned = subject in (f"{topic}-{number}", f"topic {topic}")
        node = f"{subject.replace('broker', 'node')} "
        if state == IN_FLIGHT and (concerned or node in f"{waits} "):
            yield (
                f"The change of {topic}-{number} at offset {offset} ({change}) has been in flight "
                f"for {took}. It waits for {waits}."
            )


def state_of(tables: ClusterTables, subject: str) -> list[tuple[str, Value]]:
    """Return the names and values of the present state, or nothing if the subject is unknown."""
    if subject == QUORUM:
        return [(QUORUM, tables.overview.get(QUORUM, ""))]
    place = row_of(subject)
    return [] if place is None else row_with(tables.tables, *place)


def row_of(subject: str) -> tuple[str, tuple[str, ...]] | None:
    """Return the table that has a row for the subject while it exists, and the first values of the
    row. Return None if no table has one, as for the owner of defaults, "broker (default)"."""
    kind, space, name = subject.partition(" ")
    if kind == "broker" and name.isdecimal():
        return "brokers", (name,)
    if space:
        return ("topics", (name,)) if kind == "topic" else None
    topic, _, number = subject.rpartition("-")
    return ("partitions", (topic, number)) if topic and number.isdecimal() else None


def row_with(
    tables: Mapping[str, Table], name: str, key: tuple[str, ...]
) -> list[tuple[str, Value]]:
    """Return the columns and values of the row whose first values have these texts."""
    table = tables[name]
    for row in table.rows:
        if tuple(map(str, row[: len(key)])) == key:
            return list(zip(table.columns, row, strict=True))
    return []
