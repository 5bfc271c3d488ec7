"""Collects the results of the parts of one request, which arrive in any order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Generic, TypeVar

T = TypeVar("T")


class ResultCollector(Generic[T]):
    """Calls a function with all results when the last one has arrived."""

    def __init__(self, count: int, done: Callable[[Sequence[T]], None]) -> None:
        """`done` receives the `count` results in the order of their slots. The last slot that gets
        its result calls it. If `count` is 0, this method calls it."""
        self._results: dict[int, T] = {}
        self._count = count
        self._done = done
        if not count:
            done(())

    def slot(self, index: int) -> Callable[[T], None]:
        """Return the function that takes the result of part `index`. Call it exactly once."""
        return partial(self._take, index)

    def _take(self, index: int, result: T) -> None:
        self._results[index] = result
        if len(self._results) == self._count:
            self._done([self._results[each] for each in range(self._count)])
