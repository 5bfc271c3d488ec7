"""`quorate status --watch`: reads the state of the cluster repeatedly, and shows it.

A terminal is redrawn with tables after each read. Any other output gets a block of lines for each
change. With --format json, each change is one line, also on a terminal. If the cluster cannot be
reached, the error is shown, and the next attempt follows after the pause."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Protocol, TypeVar

import click

from quorate.cli.terminal.safe_text import echo, echo_drawn
from quorate.cli.terminal.tables import Cell, Mark, Part, Table, is_drawn, terminal_lines

HOME, CLEAR_LINE, CLEAR_BELOW = "\x1b[H", "\x1b[K", "\x1b[J"
ERASE = "\x1b[2J"
"""The control sequence that clears the whole screen."""


class Content(Protocol):
    """The content of one output: a status, or the reason why there is none."""

    @property
    def lasting(self) -> Any:
        """Return the value that is compared to detect a change. It does not contain the high
        watermark and the lags, which change all the time."""

    def lines(self) -> Iterator[str]:
        """Yield the lines of the output."""
        ...

    def parts(self) -> Iterable[Part]:
        """Return the tables and lines of a terminal."""
        ...

    def as_json(self) -> dict[str, Any]:
        """Return the content as JSON values."""
        ...


class Watched(Protocol):
    """A state of the cluster: a `Status` or a `ChangesReport`."""

    @property
    def lasting(self) -> Any:
        """Return the value that is compared to detect a change."""

    def lines(self, *, every: bool = False) -> Iterator[str]:
        """Yield the lines of the output, with all entries of its lists if `every`."""
        ...

    def as_json(self) -> dict[str, Any]:
        """Return the state as JSON values."""
        ...


class Unreachable:
    """The content if the cluster did not answer: the reason."""

    def __init__(self, reason: str) -> None:
        self.lasting = self.reason = reason

    def lines(self) -> Iterator[str]:
        """Yield the reason."""
        yield self.reason

    def parts(self) -> Iterable[Part]:
        """Return the reason."""
        return [Cell(self.reason, Mark.BAD)]

    def as_json(self) -> dict[str, Any]:
        """Return the reason as JSON values."""
        return {"error": self.reason}


W = TypeVar("W", bound=Watched)


class Reachable:
    """The content if the cluster answered: its status."""

    def __init__(self, status: W, draw: Callable[[W], Iterable[Part]], *, every: bool) -> None:
        self.lasting = status.lasting
        self.lines = partial(status.lines, every=every)
        self.parts = partial(draw, status)
        self._status = status

    def as_json(self) -> dict[str, Any]:
        """Return the status as JSON values."""
        return self._status.as_json()


def watch_status(
    read: Callable[[], W],
    interval_s: float,
    draw: Callable[[W], Iterable[Part]],
    *,
    as_json: bool,
    every: bool = False,
) -> None:
    """Read the status and show it, repeatedly, until Ctrl-C. Then return; KeyboardInterrupt is not
    raised.

    Each read is followed by a pause of `interval_s` seconds. A terminal is redrawn after each read
    with the tables of `draw`, unless `as_json`. Otherwise only a change is printed. A new high
    watermark or lag is no change. With `every`, the text lists all problems.

    A ClickException of `read` is shown instead of a status. Any other exception is raised."""
    show = show_json if as_json else Redrawn() if is_drawn(sys.stdout) else show_block
    before: Any = None
    try:
        while True:
            content = read_content(read, draw, every=every)
            if isinstance(show, Redrawn) or content.lasting != before:
                show(content)
                before = content.lasting
            time.sleep(interval_s)
    except KeyboardInterrupt:
        return


def read_content(
    read: Callable[[], W], draw: Callable[[W], Iterable[Part]], *, every: bool
) -> Content:
    """Return the status, or the error if `read` raises a ClickException, such as Refused."""
    try:
        return Reachable(read(), draw, every=every)
    except click.ClickException as error:
        return Unreachable(error.format_message())


def show_json(content: Content) -> None:
    """Print the time and the content as one line of JSON."""
    line = {"time": now_text(), **content.as_json()}
    echo(json.dumps(line))


def show_block(content: Content) -> None:
    """Print the time and the content as a block of lines."""
    for line in (f"--- {now_text()}", *content.lines()):
        echo(line)


class Redrawn:
    """The output on a terminal. A call with a content draws it over the previous one."""

    def __init__(self) -> None:
        self._begun = False

    def __call__(self, content: Content) -> None:
        """Draw the content over the previous one, without clearing the screen in between."""
        begin = HOME if self._begun else ERASE + HOME
        self._begun = True
        size = shutil.get_terminal_size()
        parts, left_out = shortened(content.parts(), size.lines)
        lines = fitted([*terminal_lines((now_text(), *parts), size.columns)], size.lines, left_out)
        echo_drawn(
            begin + "".join(f"{line}{CLEAR_LINE}\n" for line in lines) + CLEAR_BELOW, nl=False
        )


def shortened(parts: Iterable[Part], rows: int) -> tuple[list[Part], int]:
    """Return the parts with at most `rows` rows in each table, and the number of rows left out.
    More do not fit on the screen, and the drawing of ten thousand rows takes eight seconds."""
    whole = [*parts]
    tables = [each for each in whole if isinstance(each, Table)]
    left_out = sum(max(0, len(each.rows) - rows) for each in tables)
    cut = [
        replace(each, rows=each.rows[:rows]) if isinstance(each, Table) else each for each in whole
    ]
    return cut, left_out


def fitted(lines: Sequence[str], rows: int, left_out: int = 0) -> list[str]:
    """Return the first lines, as many as fit on a terminal with `rows` rows. The last row stays
    free for the cursor. If lines are left out, the last one says how many. `left_out` is the number
    of lines that follow `lines`."""
    room = max(2, rows - 1)
    if len(lines) + left_out <= room:
        return [*lines]
    left = len(lines) + left_out - (room - 1)
    return [*lines[: room - 1], f"... {left} more lines; make the terminal larger, or filter"]


def now_text() -> str:
    """Return the present time in UTC, as in 2025-12-31 23:59:59Z."""
    return time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime())
