"""Decides if a history of concurrent operations is linearizable (Wing and Gong 1993, with Lowe's
memory of tried states).

Each operation took effect at one moment between its call and its answer, and every answer must be
the one that the model gives at that moment. An operation without an answer took effect at any
moment after its call, or never. The search tries the operations that may have been next. It
remembers the sets of operations, each with the state after them, that led nowhere.
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
"""About a second of work. Many operations without an answer make the lists of tried sets long."""


class Undecided(Exception):
    """Raised if the history has too many possible orders."""


@dataclass(frozen=True, slots=True)
class Operation(Generic[State]):
    """One operation of a history.

    `apply(state)` returns the state afterwards in a tuple, or None if the answer could not have
    been given in `state`. If no answer came, `end` is NEVER, and `apply` gives the effect that the
    operation has if it is carried out."""

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
    """Return an order that explains every answer, or None. Orders with few unanswered operations
    are tried first, because most histories need none of these."""
    operations = sorted(history, key=lambda each: (each.start, each.end))
    answered = sum(1 << i for i, each in enumerate(operations) if each.answered)
    visited: _Visited[State] = _Visited(answered)
    # nodes with one more unanswered operation
    later: dict[tuple[int, State], _Order] = {(0, initial): ()}
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
"""The last operation, and the order before it."""


def _unrolled(order: _Order) -> list[int]:
    found = []
    while order:
        last, order = order
        found.append(last)
    return found[::-1]


def _candidates(operations: Sequence[Operation[State]], done: int) -> list[int]:
    """Return the operations that may be next: those that began before any other one that is not
    done was answered."""
    found = []
    horizon = NEVER
    first = (~done & (done + 1)).bit_length() - 1
    for i in range(first, len(operations)):
        operation = operations[i]
        if operation.start > horizon:
            break  # the operations are sorted, so all others begin later, too
        if not done >> i & 1:
            horizon = min(horizon, operation.end)
            found.append(i)
    return found


class _Visited(Generic[State]):
    """The sets of operations that were tried, each with the state after them.

    A set is skipped if a tried set has the same state and the same answered operations, and a part
    of its unanswered ones. The skipped set cannot lead any further, because an unanswered operation
    may as well never take effect. Without this rule, each unanswered operation would double the
    search."""

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
