"""Long work in short steps, as a generator.

The generator pauses with `yield` after each step. The code that drives it runs other work in
between. The return value of the generator is the result of the work.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

T = TypeVar("T")
IncrementalWork = Generator[None, None, T]


def begun(steps: IncrementalWork[None]) -> IncrementalWork[None] | None:
    """Run `steps` up to their first pause. Return `steps`, for the rest of the work, or None if the
    work is complete.

    Short work needs no driver: the handler of a small request has answered when it returns."""
    try:
        next(steps)
    except StopIteration:
        return None
    return steps


def finished(steps: IncrementalWork[T]) -> T:
    """Run all steps without a pause and return the result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found: T = end.value
            return found
