"""Plain text of the code as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

CODE = re.compile(r"(`[^`\n]+`)")
SPECIAL = re.compile(r"([\\*_<>\[\]|])")


def text(plain: str) -> str:
    """Return a text on one line that Markdown shows as it is. Words in backquotes are code."""
    parts = CODE.split(" ".join(plain.split()))
    return "".join(
        part if number % 2 else SPECIAL.sub(r"\\\1", part) for number, part in enumerate(parts)
    )


def code(plain: str) -> str:
    """Return a text as code. An empty text is shown as the word empty."""
    return f"`{plain}`" if plain else "empty"


def fenced(lines: Iterable[str], language: str = "text") -> Iterator[str]:
    """Yield a block with the lines."""
    yield f"```{language}"
    yield from lines
    yield "```"
    yield ""


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table, and an empty line. The cells are Markdown."""
    yield f"| {' | '.join(heads)} |"
    yield "|" + "---|" * len(heads)
    for row in rows:
        yield f"| {' | '.join(row)} |"
    yield ""
