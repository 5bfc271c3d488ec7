"""`quorate status --watch`: reads the state of the cluster repeatedly, and shows it.

A terminal is redrawn with tables after each read. Any other output gets a block of lines for each
change. With --format json, each change is one line, also on a terminal. If the cluster cannot be
reached, the error is shown, and the next attempt follows after the pause. A terminal then shows the
last state below the error.

A read may take long in an outage. A thread then shows for how long there has been no answer, so
that nobody takes the last state for the present one."""

from __future__ import annotations

import json
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Protocol, TypeVar

import click

from quorate.cli.terminal.safe_text import echo, echo_drawn
from quorate.cli.terminal.tables import Cell, Mark, Part, Table, is_drawn, terminal_lines

HOME, CLEAR_LINE, CLEAR_BELOW = "\x1b[H", "\x1b[K", "\x1b[J"
ERASE = "\x1b[2J"
"""The control sequence that clears the whole screen."""
QUIET_S = 2.0
"""The time of a read, in s, that shows nothing."""
LARGE_COLUMNS, LARGE_ROWS = 100, 30
"""The least size of a terminal that shows all columns and all brokers."""
REDRAW_S = 1.0
"""The pause between two drawings of a longer read, in s."""


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


class Silent:
    """The content while a read waits for the cluster."""

    def __init__(self, seconds: float) -> None:
        self.lasting = self._text = f"no answer for {seconds:.0f} s"
        self._seconds = round(seconds)

    def lines(self) -> Iterator[str]:
        """Yield the text."""
        yield self._text

    def parts(self) -> Iterable[Part]:
        """Return the text."""
        return [Cell(self._text, Mark.BAD)]

    def as_json(self) -> dict[str, Any]:
        """Return the whole seconds."""
        return {"no_answer_s": self._seconds}


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
    printed = show_json if as_json else show_block
    show = Redrawn() if not as_json and is_drawn(sys.stdout) else Printed(printed)
    try:
        while True:
            with silence_shown(show):
                content = read_content(read, draw, every=every)
            show(content)
            time.sleep(interval_s)
    except KeyboardInterrupt:
        return


@contextmanager
def silence_shown(show: Printed | Redrawn) -> Iterator[None]:
    """Show for how long the block has lasted, by a thread, if it takes longer than QUIET_S. The
    thread has ended when the block is left."""
    ended, began_s = threading.Event(), time.monotonic()

    def watch() -> None:
        pause_s = QUIET_S
        while not ended.wait(pause_s):
            show.silent(time.monotonic() - began_s)
            pause_s = REDRAW_S

    thread = threading.Thread(target=watch, name="silence", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


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


class Printed:
    """The output that gets each change once, by the function `show`."""

    def __init__(self, show: Callable[[Content], None]) -> None:
        self._show = show
        self._before: Any = None
        self._is_silent = False

    def __call__(self, content: Content) -> None:
        """Print the content if it differs from the last one."""
        if content.lasting != self._before or self._is_silent:
            self._show(content)
        self._before, self._is_silent = content.lasting, False

    def silent(self, seconds: float) -> None:
        """Print once in each read that there has been no answer for so long."""
        if not self._is_silent:
            self._is_silent = True
            self._show(Silent(seconds))


class Redrawn:
    """The output on a terminal. Each call draws over the previous content, without clearing the
    screen in between. An error and a silence are drawn above the last state."""

    def __init__(self) -> None:
        self._begun = False
        self._state: Content | None = None
        self._state_at = ""

    def __call__(self, content: Content) -> None:
        """Draw the content, and also the last state if the content is an error."""
        if isinstance(content, Unreachable):
            self._draw([*content.parts(), *self._last_state()])
        else:
            self._state, self._state_at = content, now_text()
            self._draw(content.parts())

    def silent(self, seconds: float) -> None:
        """Draw that there has been no answer for so long, above the last state."""
        self._draw([*Silent(seconds).parts(), *self._last_state()])

    def _last_state(self) -> Iterator[Part]:
        if self._state is not None:
            yield Cell(f"The state below is that of {self._state_at}", Mark.WARN)
            yield from self._state.parts()

    def _draw(self, drawn: Iterable[Part]) -> None:
        begin = HOME if self._begun else ERASE + HOME
        self._begun = True
        size = shutil.get_terminal_size()
        parts, left_out = shortened(drawn, size.lines)
        # CLEAR_LINE after the last column would erase the character there.
        shown = terminal_lines((now_text(), *parts), max(2, size.columns - 1))
        lines = fitted([*shown], size.lines, left_out)
        echo_drawn(
            begin + "".join(f"{line}{CLEAR_LINE}\n" for line in lines) + CLEAR_BELOW, nl=False
        )


def is_small() -> bool:
    """Return True if the terminal is so small that the tables of `status_tables` should be."""
    size = shutil.get_terminal_size()
    return size.columns < LARGE_COLUMNS or size.lines < LARGE_ROWS


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
