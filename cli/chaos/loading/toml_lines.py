"""The line numbers of the values in a TOML file, which tomllib does not report.

It supports the syntax of scenario files: `[table]`, `[[array of tables]]` and `key = value` at the
start of a line. A key of an inline table has the line on which the inline table begins."""

from __future__ import annotations

import re

Path = tuple[str | int, ...]

TABLE = re.compile(r"\s*\[([^\[\]]+)\]\s*(#.*)?$")
ARRAY = re.compile(r"\s*\[\[([^\[\]]+)\]\]\s*(#.*)?$")
KEY = re.compile(r"""\s*((?:"[^"]*"|'[^']*'|[\w.-])+)\s*=""")
PART = re.compile(r"""\s*("[^"]*"|'[^']*'|[\w-]+)\s*\.?""")


def lines_of(text: str) -> dict[Path, int]:
    """Return the line (from 1) of each table and key by its path.

    Elements of arrays have an index."""
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
    """Set the line of a path, and of each table above it that has no line yet."""
    for length in range(1, len(path) + 1):
        found.setdefault(path[:length], number)


def line_of(lines: dict[Path, int], path: Path) -> int:
    """Return the line of a value, or of the innermost table around it that has a line."""
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path, 1)


def _parts(dotted: str) -> list[str]:
    return [part.strip("\"'") for part in PART.findall(dotted)]


def _inside(names: list[str], lengths: dict[Path, int]) -> Path:
    """Return the path of a table. `[a.b]` after `[[a]]` is inside the last element of a."""
    path: Path = ()
    for name in names:
        path = (*path, name)
        if path in lengths:
            path = (*path, lengths[path] - 1)
    return path
