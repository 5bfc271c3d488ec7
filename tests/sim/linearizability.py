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
    """An order that explains every answer, or None."""
    operations = sorted(history, key=lambda each: (each.start, each.end))
    answered = sum(1 << i for i, each in enumerate(operations) if each.answered)
    visited: set[tuple[int, State]] = {(0, initial)}
    path: list[tuple[int, int, State]] = []  # (operation, done before, state before)
    done, state, at = 0, initial, 0
    while done & answered != answered:
        chosen = _next(operations, done, state, at, visited)
        if chosen is not None:
            at, after = chosen
            path.append((at, done, state))
            done, state, at = done | 1 << at, after, 0
            if len(visited) > MAX_VISITED:
                raise Undecided(f"more than {MAX_VISITED} orders of {len(operations)} operations")
        elif path:
            at, done, state = path.pop()
            at += 1
        else:
            return None
    return [operations[i] for i, _, _ in path]


def _next(
    operations: Sequence[Operation[State]],
    done: int,
    state: State,
    at: int,
    visited: set[tuple[int, State]],
) -> tuple[int, State] | None:
    """The first from `at` on that may come next: it began before any other that is not done was
    answered, and its answer fits."""
    first = (~done & (done + 1)).bit_length() - 1
    horizon = NEVER
    for i in range(first, len(operations)):
        operation = operations[i]
        if operation.start > horizon:
            return None  # and so does everything behind it: they are sorted
        if done >> i & 1:
            continue
        horizon = min(horizon, operation.end)
        after = operation.apply(state) if i >= at else None
        if after is not None and (done | 1 << i, after[0]) not in visited:
            visited.add((done | 1 << i, after[0]))
            return i, after[0]
    return None
