"""Texts that cannot control a terminal.

Peers choose some texts that commands print, such as the names of groups, clients and racks. Their
control characters could clear the screen of an operator, or forge what it shows. Commands therefore
print through `echo`. Only what this package draws itself may contain control characters."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import IO

import click


def echo(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Print `text` to standard output, or to standard error if `err`: as it is, or as printable
    text with tabs if the stream is a terminal. `nl` adds the end of the line."""
    stream = sys.stderr if err else sys.stdout
    click.echo(safe_text(text, stream), err=err, nl=nl)


def echo_drawn(line: str, *, nl: bool = True) -> None:
    """Print what `tables.py` drew, or JSON. Texts of peers in it are printable already."""
    click.echo(line, nl=nl)


def echo_bytes(data: bytes) -> None:
    """Write bytes to standard output: as they are, or as printable text if it is a terminal."""
    if sys.stdout.isatty():
        click.echo(printable(data.decode(errors="replace"), "\n\t"), nl=False)
    else:
        sys.stdout.buffer.write(data)


def printable(text: str, kept: str = "\n") -> str:
    """Return `text` with "?" for each character that is neither printable nor in `kept`."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each in kept else "?" for each in text)


def safe_lines(lines: Iterable[str], stream: IO[str]) -> Iterator[str]:
    """Yield lines for `stream`: as they are, or as printable text with tabs if it is a terminal."""
    is_terminal = stream.isatty()
    for line in lines:
        yield printable(line, "\n\t") if is_terminal else line


def safe_text(text: str, stream: IO[str]) -> str:
    """Return a text for `stream`, as `safe_lines` does."""
    return next(safe_lines([text], stream))
