"""Shrinks a list of faults or moves while its seed still fails (ddmin)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")
MAX_RUNS = 60


def shrunk(
    schedule: Sequence[T], fails: Callable[[Sequence[T]], bool], max_runs: int = MAX_RUNS
) -> list[T]:
    """Return a shorter schedule with which the run still fails. Leave out halves, quarters and so
    on, down to single entries. Call `fails` at most `max_runs` times."""
    left, parts, runs = list(schedule), 2, 0
    while left and runs < max_runs:
        size = max(1, len(left) // parts)
        for start in range(0, len(left), size):
            candidate = left[:start] + left[start + size :]
            runs += 1
            if fails(candidate):
                left, parts = candidate, max(2, parts - 1)
                break
            if runs >= max_runs:
                return left
        else:
            if size == 1:
                return left
            parts = min(len(left), parts * 2)
    return left
