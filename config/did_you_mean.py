"""The suggestion of a similar name for a name that is not known."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

MAX_NAME = 100
"""Longer names get no suggestion, because the comparison takes time quadratic in their length."""
SIMILARITY = 0.75
"""The least similarity of a suggested name, from 0 to 1 (difflib)."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ` Did you mean NAME?` with the known name that is most similar, or an empty string."""
    if not name or len(name) > MAX_NAME:
        return ""
    found = get_close_matches(name, list(known), 1, SIMILARITY)
    return f" Did you mean {found[0]}?" if found else ""
