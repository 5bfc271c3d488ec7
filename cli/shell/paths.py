"""Paths of the metadata shell with `.`, `..`, and globs with `*`, `?`, `{a,b}` and a backslash."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from quorate.cli.shell.nodes import Directory, Node

Path = tuple[str, ...]
"""The names from the root to a node, each of which may be a glob in a path to search for."""


@dataclass(frozen=True, slots=True)
class Found:
    """A node with its path."""

    path: Path
    node: Node

    @property
    def name(self) -> str:
        """Return the last part of the path."""
        return self.path[-1] if self.path else "/"


def absolute(path: Path) -> str:
    """Return a path as text."""
    return "/" + "/".join(path)


def resolved(target: str, working_directory: Path) -> Path:
    """Return the absolute path of a target. Globs stay in it."""
    parts = [] if target.startswith("/") else list(working_directory)
    for part in target.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
    return tuple(parts)


def find(root: Directory, wanted: Path) -> Iterator[Found]:
    """Yield the nodes that match a path, in the order of their names."""
    yield from _find(Found((), root), wanted)


def _find(at: Found, wanted: Path) -> Iterator[Found]:
    if not wanted:
        yield at
        return
    if isinstance(at.node, str):
        return
    name, rest = wanted[0], wanted[1:]
    pattern = glob_pattern(name)
    names = [name] if pattern is None else filter(pattern.fullmatch, sorted(at.node))
    for each in names:
        if each in at.node:
            yield from _find(Found((*at.path, each), at.node[each]()), rest)


def glob_pattern(glob: str) -> re.Pattern[str] | None:
    """Return the pattern of a glob, or None if the text is to be taken literally.

    The text is literal if it has no special character or if its braces do not pair."""
    out, in_group, literal = "", False, True
    characters = iter(glob)
    for character in characters:
        special = character in "?*{" or (in_group and character in ",}")
        literal = literal and not special and character != "\\"
        if not special:
            escaped = next(characters, character) if character == "\\" else character
            out += re.escape(escaped)
            continue
        if character == "{" and in_group:
            return None
        out += {"?": ".", "*": ".*", "{": "(?:", ",": "|", "}": ")"}[character]
        in_group = character == "{" or (in_group and character != "}")
    return None if literal or in_group else re.compile(out, re.DOTALL)
