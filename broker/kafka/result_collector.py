"""One answer made of several that come when they are ready."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Generic, TypeVar

T = TypeVar("T")


class ResultCollector(Generic[T]):
    def __init__(self, count: int, done: Callable[[Sequence[T]], None]) -> None:
        """`done` gets all parts in order; at once when none is expected."""
        self._parts: dict[int, T] = {}
        self._count = count
        self._done = done
        if not count:
            done(())

    def slot(self, index: int) -> Callable[[T], None]:
        return partial(self._came, index)

    def _came(self, index: int, part: T) -> None:
        self._parts[index] = part
        if len(self._parts) == self._count:
            self._done([self._parts[each] for each in range(self._count)])
