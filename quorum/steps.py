"""Long work in short steps: a generator pauses, and whoever drives it does other work in between,
or lets others at the thread that it runs in. It returns what it found."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

T = TypeVar("T")
Steps = Generator[None, None, T]


def begun(steps: Steps[None]) -> Steps[None] | None:
    """Run `steps` up to their first pause. Return the rest, or None if nothing is left.

    Short work thus needs no driver: a handler of a small request has answered when it returns."""
    try:
        next(steps)
    except StopIteration:
        return None
    return steps


def finished(steps: Steps[T]) -> T:
    """All of it at once."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found: T = end.value
            return found
