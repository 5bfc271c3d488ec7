"""The tables of the console."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Value = str | int | None | tuple[int, ...]
Row = tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """The rows of one table, the worst first, and the names of their columns.

    `note` is a sentence for viewers about what the table lacks, or empty."""

    columns: tuple[str, ...]
    rows: Sequence[Row]
    note: str = ""
