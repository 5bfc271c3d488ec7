"""`quorate status --watch`: on a terminal the picture is redrawn; elsewhere each change is a block
of lines, or one line of JSON.

A cluster that cannot be reached is shown as such, and asked again.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Protocol

import click

if TYPE_CHECKING:
    from quorate.cli.status import Status

HOME, CLEAR_LINE, CLEAR_BELOW = "\x1b[H", "\x1b[K", "\x1b[J"
ERASE = "\x1b[2J"


class Picture(Protocol):
    """What is shown, a status or why there is none."""

    @property
    def lasting(self) -> Any:
        """Equal as long as nothing really changed."""

    def lines(self) -> Iterator[str]: ...

    def as_json(self) -> dict[str, Any]: ...


class Absent:
    """The cluster did not answer."""

    def __init__(self, reason: str) -> None:
        self.lasting = self.reason = reason

    def lines(self) -> Iterator[str]:
        yield self.reason

    def as_json(self) -> dict[str, Any]:
        return {"error": self.reason}


class Present:
    def __init__(self, status: Status) -> None:
        self.lasting = status.lasting
        self.lines = status.lines
        self._status = status

    def as_json(self) -> dict[str, Any]:
        return asdict(self._status)


def watch_status(read: Callable[[], Status], interval_s: float, *, as_json: bool) -> None:
    """Until interrupted."""
    show = show_json if as_json else Redrawn() if sys.stdout.isatty() else show_block
    before: Any = None
    try:
        while True:
            picture = look(read)
            if isinstance(show, Redrawn) or picture.lasting != before:
                show(picture)
                before = picture.lasting
            time.sleep(interval_s)
    except KeyboardInterrupt:
        return


def look(read: Callable[[], Status]) -> Picture:
    try:
        return Present(read())
    except click.ClickException as error:
        return Absent(error.format_message())


def show_json(picture: Picture) -> None:
    line = {"time": now_text(), **picture.as_json()}
    click.echo(json.dumps(line))


def show_block(picture: Picture) -> None:
    for line in (f"--- {now_text()}", *picture.lines()):
        click.echo(line)


class Redrawn:
    def __init__(self) -> None:
        self._begun = False

    def __call__(self, picture: Picture) -> None:
        """Over the picture before, without a moment in which there is none."""
        begin = HOME if self._begun else ERASE + HOME
        self._begun = True
        lines = (now_text(), *picture.lines())
        click.echo(
            begin + "".join(f"{line}{CLEAR_LINE}\n" for line in lines) + CLEAR_BELOW, nl=False
        )


def now_text() -> str:
    return time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime())
