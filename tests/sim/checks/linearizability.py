"""Is a history of concurrent operations linearizable? (Wing and Gong 1993, with Lowe's memory.)

Each operation took effect at one moment between its call and its answer, and then every answer has
to be the one that the model gives. An operation without an answer took effect at any moment after
its call, or never. The search goes through the operations that may have been next, and remembers
which sets of them, with which state, led nowhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

State = TypeVar("State", bound=Hashable)
NEVER = math.inf
MAX_VISITED = 200_000
MAX_COMPARED = 5_000_000
"""About a second: many that were never answered lead to long lists of what was tried."""


class Undecided(Exception):
    """The history has too many possible orders."""


@dataclass(frozen=True, slots=True)
class Operation(Generic[State]):
    """`apply(state)` is the state afterwards, or None when the answer could not have been given in
    `state`. With `end` NEVER nobody was answered, and `apply` says what it does if it is done."""

    name: str
    start: float
    end: float
    apply: Callable[[State], tuple[State] | None]

    @property
    def answered(self) -> bool:
        return self.end != NEVER


def linearization(
    history: Sequence[Operation[State]], initial: State
) -> list[Operation[State]] | None:
    """An order that explains every answer, or None. Orders with few of the unanswered operations
    come first: most histories need none of them."""
    operations = sorted(history, key=lambda each: (each.start, each.end))
    answered = sum(1 << i for i, each in enumerate(operations) if each.answered)
    visited: _Visited[State] = _Visited(answered)
    later: dict[tuple[int, State], _Order] = {(0, initial): ()}  # with one unanswered more
    while later:
        nodes = [(*node, order) for node, order in later.items() if visited.is_new(*node)]
        later = {}
        while nodes:
            done, state, order = nodes.pop()
            if done & answered == answered:
                return [operations[i] for i in _unrolled(order)]
            for i in reversed(_candidates(operations, done)):
                after = operations[i].apply(state)
                if after is None:
                    continue
                node = (done | 1 << i, after[0])
                if not operations[i].answered:
                    later.setdefault(node, (i, order))
                elif visited.is_new(*node):
                    nodes.append((*node, (i, order)))
    return None


_Order = tuple[()] | tuple[int, "_Order"]
"""The last operation, and what was before."""


def _unrolled(order: _Order) -> list[int]:
    found = []
    while order:
        last, order = order
        found.append(last)
    return found[::-1]


def _candidates(operations: Sequence[Operation[State]], done: int) -> list[int]:
    """Those that began before any other that is not done was answered."""
    found = []
    horizon = NEVER
    first = (~done & (done + 1)).bit_length() - 1
    for i in range(first, len(operations)):
        operation = operations[i]
        if operation.start > horizon:
            break  # and so does everything behind it: they are sorted
        if not done >> i & 1:
            horizon = min(horizon, operation.end)
            found.append(i)
    return found


class _Visited(Generic[State]):
    """Which sets of operations were tried, with which state. A set with more of the unanswered ones
    than one that was tried, and else the same, leads nowhere that the other does not: they may as
    well never be done. Without this, each unanswered one would double what is to be tried."""

    def __init__(self, answered: int) -> None:
        self._answered = answered
        self._unanswered: dict[tuple[int, State], list[int]] = {}
        self._count = 0
        self._compared = 0

    def is_new(self, done: int, state: State) -> bool:
        tried = self._unanswered.setdefault((done & self._answered, state), [])
        unanswered = done & ~self._answered
        self._compared += len(tried)
        if self._compared > MAX_COMPARED:
            raise Undecided(f"more than {MAX_COMPARED} comparisons of orders")
        if any(each & unanswered == each for each in tried):
            return False
        tried.append(unanswered)
        self._count += 1
        if self._count > MAX_VISITED:
            raise Undecided(f"more than {MAX_VISITED} orders")
        return True
