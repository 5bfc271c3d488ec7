"""Tables on a terminal, and plain lines in every other output.

A command gives its data: columns, rows, the meaning of a cell as a `Mark`, and shares as a `Bar`.
On a terminal, rich draws them in its width. In a pipe, the command's plain lines are printed as
they are, because programs read them. They are also printed if TERM is dumb. NO_COLOR removes the
colours and leaves the tables.

Invariant: neither a cell nor a plain line controls the terminal (`safe_text.py`). rich is imported
only when a table is drawn, because the import takes time."""

from __future__ import annotations

import enum
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import TYPE_CHECKING, NamedTuple, TextIO

import click

from quorate.cli.terminal.safe_text import printable, safe_lines

if TYPE_CHECKING:
    from rich.table import Table as RichTable
    from rich.text import Text

MAX_ROWS = 1_000
"""The most rows that are drawn, because rich measures every cell before it draws the first one."""
BAR_WIDTH = 12
SHORT, WRAPPED, GAP = 17, 12, 3
"""The most characters of a cell that should not be wrapped, such as "under-replicated", the least
width of other columns, and the characters between two columns."""
BLOCKS, ASCII_BLOCKS = ("█", "░"), ("#", "-")
"""The characters of a bar for its full and its empty part."""


class Mark(enum.Enum):
    """The meaning of a cell, with rich's name of its style."""

    GOOD = "green"
    WARN = "yellow"
    BAD = "bold red"
    NOTE = "dim"


@dataclass(frozen=True, slots=True)
class Cell:
    """A text with its meaning."""

    text: str
    mark: Mark | None = None


@dataclass(frozen=True, slots=True)
class Bar:
    """The share `done` of `total`. `unit` follows the numbers, as in "2 of 3 brokers"."""

    done: int
    total: int
    unit: str = ""

    @property
    def filled(self) -> int:
        """Return the number of full characters. A bar is full or empty only if the share is."""
        if self.done >= self.total:
            return BAR_WIDTH
        if self.done <= 0:
            return 0
        return min(BAR_WIDTH - 1, max(1, BAR_WIDTH * self.done // self.total))

    @property
    def mark(self) -> Mark:
        """Return GOOD for a full bar, BAD for an empty one, and WARN otherwise."""
        if self.done >= self.total:
            return Mark.GOOD
        return Mark.WARN if self.done > 0 else Mark.BAD


Value = str | int | float | Cell | Bar | None
"""A cell of a row. None is shown as "-"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows under the names of their columns. A column of numbers is right-aligned, and a column of
    None is left out. Without `columns` there is no head. The columns `optional` say nothing that
    others do not say: they are left out if the table would be wider than the terminal."""

    rows: Sequence[Sequence[Value]]
    columns: Sequence[str] = ()
    title: str = ""
    optional: Sequence[str] = ()


Part = Table | Cell | str
"""A table, or a line between tables."""


def show(plain: Iterable[str], parts: Iterable[Part]) -> None:
    """Print `parts` on a terminal, and the lines of `plain` in any other output. Only one of them
    is iterated over, unless there are more than MAX_ROWS rows."""
    lines = safe_lines(plain, sys.stdout)
    if is_drawn(sys.stdout):
        drawn = [*parts]
        if sum(len(each.rows) for each in drawn if isinstance(each, Table)) <= MAX_ROWS:
            lines = terminal_lines(drawn)
    for line in lines:
        click.echo(line)


def is_drawn(stream: TextIO) -> bool:
    """Return True if tables are drawn on `stream`: it is a terminal that can move its cursor."""
    return stream.isatty() and os.environ.get("TERM", "").lower() not in ("dumb", "unknown")


def terminal_lines(parts: Iterable[Part], columns: int | None = None) -> Iterator[str]:
    """Yield the lines of `parts` with the control sequences of their colours. No line is wider
    than the terminal, or than `columns`."""
    from rich.console import Console

    console = Console(
        file=StringIO(), force_terminal=True, width=columns, markup=False, emoji=False,
        highlight=False,
    )  # fmt: skip
    blocks = BLOCKS if can_encode("".join(BLOCKS), sys.stdout) else ASCII_BLOCKS
    for part in parts:
        with console.capture() as captured:
            drawn = (
                drawn_table(part, blocks, console.width)
                if isinstance(part, Table)
                else text_of(part, blocks)
            )
            console.print(drawn, overflow="fold")
        yield from captured.get().splitlines()


def drawn_table(table: Table, blocks: tuple[str, str], width: int) -> RichTable:
    """Return rich's table. Long cells are wrapped, so that nothing is cut off. Short cells are
    whole if all of them fit into `width` characters."""
    from rich.box import ASCII2, SIMPLE_HEAD
    from rich.cells import cell_len
    from rich.table import Table as RichTable

    drawn = RichTable(
        title=printable(table.title) or None,
        title_justify="left",
        title_style="bold",
        box=SIMPLE_HEAD if blocks == BLOCKS else ASCII2,
        show_header=bool(table.columns),
        show_edge=False,
        pad_edge=False,
    )
    names = table.columns or [""] * max((len(row) for row in table.rows), default=0)
    used = [
        Column(name, cells, max(map(cell_len, [name, *map(plain_text, cells)])))
        for name, *cells in zip(names, *table.rows, strict=True)
        if any(each is not None for each in cells) or not cells
    ]
    if sum(each.least_width for each in used) > width:
        used = [each for each in used if each.name not in table.optional]
    whole = sum(each.least_width for each in used) <= width
    for each in used:
        drawn.add_column(
            printable(each.name),
            justify="right"
            if all(isinstance(cell, int | float | None) for cell in each.cells)
            else "left",
            overflow="fold",
            no_wrap=each.has_bars or (whole and each.is_short),
        )
    for row in zip(*(each.cells for each in used), strict=True):
        drawn.add_row(*(text_of(value, blocks) for value in row))
    return drawn


class Column(NamedTuple):
    """A column of a table. `width` is the length of its longest cell or of its name."""

    name: str
    cells: Sequence[Value]
    width: int

    @property
    def has_bars(self) -> bool:
        """Return True if the cells are bars, which cannot be wrapped."""
        return any(isinstance(each, Bar) for each in self.cells)

    @property
    def is_short(self) -> bool:
        """Return True if the cells should not be wrapped."""
        return self.has_bars or self.width <= SHORT

    @property
    def least_width(self) -> int:
        """Return the width that the column needs, with the gap, if only long cells are wrapped."""
        return GAP + (self.width if self.is_short else min(self.width, WRAPPED))


def plain_text(value: Value) -> str:
    """Return the text of a cell without colours."""
    if isinstance(value, Bar):
        return f"{'#' * BAR_WIDTH} {value.done} of {value.total} {value.unit}".rstrip()
    return value.text if isinstance(value, Cell) else "-" if value is None else str(value)


def text_of(value: Value, blocks: tuple[str, str]) -> Text:
    """Return rich's text of a cell."""
    from rich.text import Text

    if isinstance(value, Bar):
        full, empty = blocks
        return Text.assemble(
            (full * value.filled, value.mark.value),
            (empty * (BAR_WIDTH - value.filled), Mark.NOTE.value),
            f" {value.done} of {value.total} {value.unit}".rstrip(),
        )
    if isinstance(value, Cell):
        return Text(printable(value.text), style=value.mark.value if value.mark else "")
    return Text("-" if value is None else printable(str(value)))


def can_encode(text: str, stream: TextIO) -> bool:
    """Return True if the encoding of `stream` has all characters of `text`."""
    try:
        text.encode(stream.encoding or "ascii")
    except (LookupError, UnicodeEncodeError):
        return False
    return True
