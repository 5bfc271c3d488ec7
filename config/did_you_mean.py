"""The suggestion of a similar name for a name that is not known."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

MAX_NAME = 100
"""Longer names get no suggestion, because the comparison takes time quadratic in their length."""
MIN_BEGINNING = 3
"""A shorter name is not taken for the beginning of a longer one."""
SIMILARITY = 0.75
"""The least similarity of a suggested name, from 0 to 1 (difflib)."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ` Did you mean NAME?`, or an empty string. NAME is the only known name that begins
    with `name`, or else the known name that is most similar."""
    if not name or len(name) > MAX_NAME:
        return ""
    names = list(known)
    found = [each for each in names if each.startswith(name)]
    if len(found) != 1 or len(name.lstrip("-")) < MIN_BEGINNING:
        found = get_close_matches(name, names, 1, SIMILARITY)
    return f" Did you mean {found[0]}?" if found else ""
