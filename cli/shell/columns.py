"""The layout of names in columns, as `ls` prints them on a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

GAP = 2
NARROWEST = 4


def in_columns(names: Sequence[str], width: int | None) -> Iterator[str]:
    """Yield lines with the names downwards in as many columns as fit into `width`.

    If `width` is None, there is one column."""
    columns = _columns(names, width)
    widths = [_width(column) for column in columns[:-1]] + [0]
    for row in zip_longest(*columns, fillvalue=""):
        yield "".join(f"{name:{size}}" for name, size in zip(row, widths, strict=True))


def _columns(names: Sequence[str], width: int | None) -> list[Sequence[str]]:
    for count in range((width or 0) // NARROWEST, 1, -1):
        height = -(-len(names) // count)
        columns = [names[at : at + height] for at in range(0, len(names), max(1, height))]
        if len(columns) == count and sum(map(_width, columns)) <= (width or 0):
            return columns
    return [names]


def _width(column: Sequence[str]) -> int:
    return max(map(len, column)) + GAP
