"""At which line of a TOML file a value stands: tomllib reads values and forgets where they were.

Knows what scenario files are made of: `[table]`, `[[array of tables]]` and `key = value` at the
start of a line. A key inside of an inline table counts as standing where its line begins.
"""

from __future__ import annotations

import re

Path = tuple[str | int, ...]

TABLE = re.compile(r"\s*\[([^\[\]]+)\]\s*(#.*)?$")
ARRAY = re.compile(r"\s*\[\[([^\[\]]+)\]\]\s*(#.*)?$")
KEY = re.compile(r"""\s*((?:"[^"]*"|'[^']*'|[\w.-])+)\s*=""")
PART = re.compile(r"""\s*("[^"]*"|'[^']*'|[\w-]+)\s*\.?""")


def lines_of(text: str) -> dict[Path, int]:
    """The line (from 1) of each table and key, by its path; an array's element by its index."""
    found: dict[Path, int] = {}
    lengths: dict[Path, int] = {}
    table: Path = ()
    for number, line in enumerate(text.splitlines(), 1):
        if array := ARRAY.match(line):
            name = (*_inside(_parts(array[1])[:-1], lengths), _parts(array[1])[-1])
            table = (*name, lengths.get(name, 0))
            lengths[name] = lengths.get(name, 0) + 1
            _set(found, table, number)
        elif single := TABLE.match(line):
            table = _inside(_parts(single[1]), lengths)
            _set(found, table, number)
        elif key := KEY.match(line):
            found.setdefault((*table, *_parts(key[1])), number)
    return found


def _set(found: dict[Path, int], path: Path, number: int) -> None:
    """And of the tables that it is in, where nothing named them before."""
    for length in range(1, len(path) + 1):
        found.setdefault(path[:length], number)


def line_of(lines: dict[Path, int], path: Path) -> int:
    """Of the value, or of what it stands in."""
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path, 1)


def _parts(dotted: str) -> list[str]:
    return [part.strip("\"'") for part in PART.findall(dotted)]


def _inside(names: list[str], lengths: dict[Path, int]) -> Path:
    """`[a.b]` after `[[a]]` stands in the last element of a."""
    path: Path = ()
    for name in names:
        path = (*path, name)
        if path in lengths:
            path = (*path, lengths[path] - 1)
    return path
