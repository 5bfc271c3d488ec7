"""The part of a table that a viewer sees: filtered, sorted, and cut to a window. All pure.

A viewer receives at most MAX_ROWS rows per response, whatever the size of the cluster is. A large
table is filtered and sorted in steps of STEP_ROWS rows, between which other viewers are served."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import islice
from operator import itemgetter
from typing import Any

from quorate.cli.console.views.table import Row, Table, Value
from quorate.quorum.incremental_work import IncrementalWork

MAX_ROWS = 200
"""The most rows in one response."""
MAX_FILTER_CHARS = 200
STEP_ROWS = 2_000
"""The most rows that one step filters, sorts or merges."""


class BadWindow(Exception):
    """The parameters of a request for a window are invalid. The message names the parameter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The checked parameters of one request. `sort` None keeps the table's own order."""

    words: tuple[str, ...] = ()
    sort: str | None = None
    descending: bool = False
    first: int = 0
    limit: int = MAX_ROWS

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Window:
        """Return the parameters. Raise BadWindow if one of them is unknown or invalid."""
        unknown = sorted(query.keys() - {"filter", "sort", "down", "from", "limit"})
        if unknown:
            raise BadWindow(f"no parameter {unknown[0][:40]!r}")
        text = query.get("filter", "")
        if len(text) > MAX_FILTER_CHARS:
            raise BadWindow(f"filter: it has more than {MAX_FILTER_CHARS} characters")
        return cls(
            words=tuple(text.lower().split()),
            sort=query.get("sort") or None,
            descending=query.get("down") == "1",
            first=_number(query, "from", 0, 10**9),
            limit=_number(query, "limit", MAX_ROWS, MAX_ROWS),
        )


def _number(query: Mapping[str, str], name: str, default: int, high: int) -> int:
    text = query.get(name, str(default))
    if not (text.isascii() and text.isdecimal() and len(text) < 11 and int(text) <= high):
        raise BadWindow(f"{name}: value {text[:20]!r} must be a number from 0 to {high}")
    return int(text)


def window_of(table: Table, window: Window) -> IncrementalWork[dict[str, Any]]:
    """Return the window as JSON values: its rows, the number of matching rows and of all rows.

    A row matches if each word is part of its text. Raise BadWindow if the table has no column
    `sort`."""
    rows = table.rows
    if window.words:
        rows = yield from filtered(rows, window.words)
    if window.sort is None:
        shown = rows[window.first : window.first + window.limit]
    elif window.sort in table.columns:
        shown = yield from ordered(rows, table.columns.index(window.sort), window)
    else:
        raise BadWindow(f"sort: the table has no column {window.sort[:40]!r}")
    return {
        "columns": table.columns,
        "note": table.note,
        "total": len(table.rows),
        "matching": len(rows),
        "from": window.first,
        "rows": shown,
    }


def filtered(rows: Sequence[Row], words: Sequence[str]) -> IncrementalWork[list[Row]]:
    """Return the rows that match, in their order."""
    found: list[Row] = []
    for start in range(0, len(rows), STEP_ROWS):
        found += [row for row in rows[start : start + STEP_ROWS] if matches(row, words)]
        if len(rows) > STEP_ROWS:
            yield
    return found


def ordered(rows: Sequence[Row], column: int, window: Window) -> IncrementalWork[list[Row]]:
    """Return the rows of the window in the order of a column. Rows with the same value keep their
    order. Parts are sorted, and then merged as far as the window needs."""
    parts: list[list[tuple[Any, Row]]] = []
    for start in range(0, len(rows), STEP_ROWS):
        part = [(order_of(row[column]), row) for row in rows[start : start + STEP_ROWS]]
        parts.append(sorted(part, key=itemgetter(0), reverse=window.descending))
        if len(rows) > STEP_ROWS:
            yield
    merged = merge(*parts, key=itemgetter(0), reverse=window.descending)
    before, rest = divmod(min(window.first, len(rows)), STEP_ROWS)
    for _ in range(before):
        deque(islice(merged, STEP_ROWS), maxlen=0)
        yield
    return [row for _, row in islice(merged, rest, rest + window.limit)]


def matches(row: Row, words: Sequence[str]) -> bool:
    """Return True if the text of the row contains each of the words, which are in lower case."""
    text = " ".join(text_of(value) for value in row).lower()
    return all(word in text for word in words)


def text_of(value: Value) -> str:
    """Return a value as the page shows it."""
    if value is None:
        return "none"
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def order_of(value: Value) -> tuple[int, int | tuple[int, ...], str]:
    """Return the key by which values of one column are sorted: none, numbers, lists, texts."""
    if value is None:
        return 0, 0, ""
    if isinstance(value, int):
        return 1, value, ""
    if isinstance(value, tuple):
        return 2, value, ""
    return 3, 0, value
