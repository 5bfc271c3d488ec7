"""Texts that cannot control a terminal.

Peers choose some texts that commands print, such as the names of groups, clients and racks. Their
control characters could clear the screen of an operator, or forge what it shows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import IO


def printable(text: str, kept: str = "\n") -> str:
    """Return `text` with "?" for each character that is neither printable nor in `kept`."""
    return "".join(each if each.isprintable() or each in kept else "?" for each in text)


def safe_lines(lines: Iterable[str], stream: IO[str]) -> Iterator[str]:
    """Yield lines for `stream`: as they are, or as printable text with tabs if it is a terminal."""
    is_terminal = stream.isatty()
    for line in lines:
        yield printable(line, "\n\t") if is_terminal else line


def safe_text(text: str, stream: IO[str]) -> str:
    """Return a text for `stream`, as `safe_lines` does."""
    return next(safe_lines([text], stream))
