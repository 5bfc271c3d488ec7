"""A copy of all producer states as of one moment, taken in steps while the states change.

A partition may have 100,000 producers. To copy them in one step would hold the event loop for a
tenth of a second. The copy therefore takes some producers in each step. Before a producer changes
that the copy has not taken yet, the states give it to the copy (`before_change`).

Invariant: the copy has each producer as it was when the copy began.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from quorate.quorum.incremental_work import IncrementalWork

PRODUCERS_PER_STEP = 500
"""The producers that one step copies, in about a millisecond."""
P = TypeVar("P")
T = TypeVar("T")


class ProducerCopy(Generic[P, T]):
    """One copy in progress. The event loop owns it, and `ProducerStates` refers to it until it is
    complete or void."""

    def __init__(self, producers: dict[int, P], take: Callable[[int, P], T]) -> None:
        """Begin with these producers by id. `take` returns the copy of one producer."""
        self.is_void = False
        """True once a truncation has changed the producers, so that the copy is useless."""
        self._producers = producers
        self._remaining = dict.fromkeys(producers)
        self._take = take
        self._taken: list[T] = []

    def before_change(self, producer_id: int) -> None:
        """Take a producer that is about to change or to be removed. Do nothing for a new one, and
        for one that is taken."""
        if producer_id in self._remaining:
            del self._remaining[producer_id]
            self._taken.append(self._take(producer_id, self._producers[producer_id]))

    def steps(self) -> IncrementalWork[list[T]]:
        """Return the steps of the copy. Its result has no order."""
        waiting: Iterator[int] = iter(list(self._remaining))
        for number, producer_id in enumerate(waiting, 1):
            self.before_change(producer_id)
            if number % PRODUCERS_PER_STEP == 0:
                yield
                if self.is_void:
                    break
        return self._taken
