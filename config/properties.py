"""Java's .properties format: escapes, continuation lines, comments, all separators, line
numbers. `loader.py` makes a node's configuration from the entries.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from quorate.config.key import ConfigError

BLANKS = " \t\f"
ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|u|.)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Entry:
    """One `key = value`. `line` is the number of its first line, counted from 1."""

    name: str
    value: str
    line: int


def parse(text: str, file: str = "") -> list[Entry]:
    """Return all entries in order, also those with the same key. Java uses the last of these.

    A byte order mark, with which some editors of Windows begin a file, is no part of the first key.
    Raise ConfigError, prefixed with `file` and the line, if an escape is invalid."""
    text = text.removeprefix("\ufeff")
    return [split(line, number, file) for number, line in logical_lines(text)]


def logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield (line number, text) without comments and blank lines, with continuation lines joined.

    Leading blanks of a continuation line are removed."""
    started, pending = 0, ""
    for number, natural in enumerate(re.split(r"\r\n|\r|\n", text), 1):
        line = natural.lstrip(BLANKS)
        if not started and (not line or line[0] in "#!"):
            continue
        started = started or number
        if ends_open(line):
            pending += line[:-1]
            continue
        yield started, pending + line
        started, pending = 0, ""
    if started and pending:
        yield started, pending


def ends_open(line: str) -> bool:
    """Return True if the next line continues this one: it ends with an odd number of
    backslashes."""
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def split(line: str, number: int, file: str) -> Entry:
    """Return the entry in a logical line. The key ends at the first unescaped `=`, `:` or blank.

    Raise ConfigError if an escape is invalid."""
    end = 0
    while end < len(line) and line[end] not in "=:" + BLANKS:
        end += 2 if line[end] == "\\" else 1
    rest = line[end:].lstrip(BLANKS)
    if rest[:1] in ("=", ":") and rest:
        rest = rest[1:].lstrip(BLANKS)
    where = f"{file}:{number}"
    return Entry(unescape(line[:end], where), unescape(rest, where), number)


def unescape(text: str, where: str) -> str:
    """Return the text without escapes. Raise ConfigError, prefixed with `where`, if one is
    invalid."""

    def replaced(match: re.Match[str]) -> str:
        escaped = match[1]
        if escaped == "u":
            raise ConfigError(f"{where}: \\u must be followed by four hexadecimal digits")
        if escaped[0] == "u":
            return chr(int(escaped[1:], 16))
        return ESCAPES.get(escaped, escaped)

    if "\\" not in text:
        return text
    joined = ESCAPE.sub(replaced, text)
    # Java's escapes are UTF-16 code units, so a surrogate pair is one character.
    return joined.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def escape(text: str, *, key: bool = False) -> str:
    """Return a value, or a key if `key` is true, with escapes, so that `parse` returns the original
    text."""
    out = []
    for position, char in enumerate(text):
        if char in "\t\n\r\f":
            out.append("\\" + {value: name for name, value in ESCAPES.items()}[char])
        elif char in "\\#!=:" and (key or char == "\\"):
            out.append("\\" + char)
        elif char == " " and (key or position == 0):
            out.append("\\ ")
        else:
            out.append(char)
    return "".join(out)


def render(values: dict[str, str]) -> str:
    """Return a .properties file with the values in the given order."""
    lines = (f"{escape(name, key=True)}={escape(value)}\n" for name, value in values.items())
    return "".join(lines)
