"""The part of a table that a viewer sees: filtered, sorted, and cut to a window. All pure.

A viewer receives at most MAX_ROWS rows per response, whatever the size of the cluster is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from quorate.cli.console.views.table import Row, Table, Value

MAX_ROWS = 200
"""The most rows in one response."""
MAX_FILTER_CHARS = 200


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


def window_of(table: Table, window: Window) -> dict[str, Any]:
    """Return the window as JSON values: its rows, the number of matching rows and of all rows.

    A row matches if each word is part of its text. Raise BadWindow if the table has no column
    `sort`."""
    rows = table.rows
    if window.words:
        rows = [row for row in rows if matches(row, window.words)]
    if window.sort is not None:
        if window.sort not in table.columns:
            raise BadWindow(f"sort: the table has no column {window.sort[:40]!r}")
        at = table.columns.index(window.sort)
        rows = sorted(rows, key=lambda row: order_of(row[at]), reverse=window.descending)
    return {
        "columns": table.columns,
        "note": table.note,
        "total": len(table.rows),
        "matching": len(rows),
        "from": window.first,
        "rows": rows[window.first : window.first + window.limit],
    }


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
