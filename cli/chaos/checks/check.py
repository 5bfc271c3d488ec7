"""One check of a verdict: its name, its result and the reason as text. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

SHOWN = 8
"""The most numbers or reasons that a text lists."""


@dataclass(frozen=True, slots=True)
class Check:
    """One check of the verdict, with its result as text."""

    name: str
    good: bool
    text: str


@dataclass(frozen=True, slots=True)
class NotJudged:
    """A check that has no evidence on the cluster of the run, with the reason."""

    name: str
    reason: str


def first(reasons: Sequence[str], otherwise: str) -> str:
    """Return the first reasons as text with the number of the others, or `otherwise` if none."""
    more = len(reasons) - SHOWN
    rest = f"; and {more} more" if more > 0 else ""
    return "; ".join(reasons[:SHOWN]) + rest if reasons else otherwise


def listed(numbers: Iterable[int]) -> str:
    """Return the first numbers as text, with the number of the others."""
    found = sorted(numbers)
    more = len(found) - SHOWN
    return ", ".join(map(str, found[:SHOWN])) + (f" and {more} more" if more > 0 else "")
