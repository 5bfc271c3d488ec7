"""Diagrams as tables.

GitHub draws the Mermaid diagrams of a page. On the site, a script from another host would have to
draw them, and the site makes no request to another host. It therefore shows the same arrows in a
table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

DIAGRAM = re.compile(r"^```mermaid\n(\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
STATE = re.compile(r"(\S+) --> (\S+) : (.+)")
MESSAGE = re.compile(r"(\w+)--?>>(\w+): (.+)")
PARTICIPANT = re.compile(r"participant (\w+) as (.+)")
NOTE = re.compile(r"Note over (\w+): (.+)")
BLOCK = re.compile(r"(loop|alt|else)\b ?(.*)")
START = "[*]"
HEADS = {
    "stateDiagram-v2": "| state | next state | cause |",
    "sequenceDiagram": "| from | to | message or event |",
}


class UnknownLine(Exception):
    """A diagram has a line that the tables cannot show."""


def as_tables(text: str) -> str:
    """Return a page with a table in the place of each diagram. Raise UnknownLine if a line of a
    diagram is of a kind that this module does not know."""
    return DIAGRAM.sub(lambda found: "\n".join(_table(found[1], found[2].splitlines())), text)


def _table(kind: str, lines: list[str]) -> Iterator[str]:
    if kind not in ROWS:
        raise UnknownLine(f"the diagram is a {kind}")
    yield ""
    yield HEADS[kind]
    yield "|---|---|---|"
    for row in ROWS[kind](lines):
        yield f"| {' | '.join(row)} |"
    yield ""


def _state_rows(lines: list[str]) -> Iterator[tuple[str, str, str]]:
    for line in lines:
        found = STATE.fullmatch(line.strip())
        if found is None:
            raise UnknownLine(line)
        before, after, cause = found.groups()
        yield ("start" if before == START else before), after, cause


def _sequence_rows(lines: list[str]) -> Iterator[tuple[str, str, str]]:
    names: dict[str, str] = {}
    for line in map(str.strip, lines):
        if found := PARTICIPANT.fullmatch(line):
            names[found[1]] = found[2]
        elif found := MESSAGE.fullmatch(line):
            yield names[found[1]], names[found[2]], found[3]
        elif found := NOTE.fullmatch(line):
            yield names[found[1]], "", found[2]
        elif found := BLOCK.fullmatch(line):
            yield "", "", f"**{found[1]}** {found[2]}".strip()
        elif line != "end":
            raise UnknownLine(line)


ROWS: dict[str, Callable[[list[str]], Iterator[tuple[str, str, str]]]] = {
    "stateDiagram-v2": _state_rows,
    "sequenceDiagram": _sequence_rows,
}
"""The function that makes the rows of a diagram, by its kind."""
