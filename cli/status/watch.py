"""`quorate status --watch`: reads the state of the cluster repeatedly, and shows it.

A terminal is redrawn after each read. Any other output gets a block of lines for each change. With
--format json, each change is one line, also on a terminal. If the cluster cannot be reached, the
error is shown, and the next attempt follows after the pause."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Protocol

import click

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

    def as_json(self) -> dict[str, Any]:
        """Return the reason as JSON values."""
        return {"error": self.reason}


class Reachable:
    """The content if the cluster answered: its status."""

    def __init__(self, status: Watched, *, every: bool = False) -> None:
        self.lasting = status.lasting
        self.lines = partial(status.lines, every=every)
        self._status = status

    def as_json(self) -> dict[str, Any]:
        """Return the status as JSON values."""
        return self._status.as_json()


def watch_status(
    read: Callable[[], Watched], interval_s: float, *, as_json: bool, every: bool = False
) -> None:
    """Read the status and show it, repeatedly, until Ctrl-C. Then return; KeyboardInterrupt is not
    raised.

    Each read is followed by a pause of `interval_s` seconds. A terminal is redrawn after each read,
    unless `as_json`. Otherwise only a change is printed. A new high watermark or lag is no change.
    With `every`, the text lists all problems.

    A ClickException of `read` is shown instead of a status. Any other exception is raised."""
    show = show_json if as_json else Redrawn() if sys.stdout.isatty() else show_block
    before: Any = None
    try:
        while True:
            content = read_content(read, every=every)
            if isinstance(show, Redrawn) or content.lasting != before:
                show(content)
                before = content.lasting
            time.sleep(interval_s)
    except KeyboardInterrupt:
        return


def read_content(read: Callable[[], Watched], *, every: bool = False) -> Content:
    """Return the status, or the error if `read` raises a ClickException, such as Refused."""
    try:
        return Reachable(read(), every=every)
    except click.ClickException as error:
        return Unreachable(error.format_message())


def show_json(content: Content) -> None:
    """Print the time and the content as one line of JSON."""
    line = {"time": now_text(), **content.as_json()}
    click.echo(json.dumps(line))


def show_block(content: Content) -> None:
    """Print the time and the content as a block of lines."""
    for line in (f"--- {now_text()}", *content.lines()):
        click.echo(line)


class Redrawn:
    """The output on a terminal. A call with a content draws it over the previous one."""

    def __init__(self) -> None:
        self._begun = False

    def __call__(self, content: Content) -> None:
        """Draw the content over the previous one, without clearing the screen in between."""
        begin = HOME if self._begun else ERASE + HOME
        self._begun = True
        size = shutil.get_terminal_size()
        lines = fitted((now_text(), *content.lines()), size.columns, size.lines)
        click.echo(
            begin + "".join(f"{line}{CLEAR_LINE}\n" for line in lines) + CLEAR_BELOW, nl=False
        )


def fitted(lines: Sequence[str], columns: int, rows: int) -> list[str]:
    """Return the first lines, as many as fit on a terminal of this size, each cut to its width. The
    last row stays free for the cursor. If lines are left out, the last one says how many."""
    room = max(2, rows - 1)
    shown = list(lines) if len(lines) <= room else list(lines[: room - 1])
    if len(shown) < len(lines):
        left = len(lines) - len(shown)
        shown.append(f"... {left} more lines; make the terminal larger, or filter")
    return [line if len(line) <= columns else line[: max(1, columns - 1)] + "…" for line in shown]


def now_text() -> str:
    """Return the present time in UTC, as in 2025-12-31 23:59:59Z."""
    return time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime())
