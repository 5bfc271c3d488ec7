"""The checker, compared with known verdicts for histories of a register, and with a search of all
orders."""

from __future__ import annotations

import itertools
from random import Random

import pytest

from tests.sim.checks import linearizability
from tests.sim.checks.linearizability import NEVER, Operation, Undecided, linearization

Register = Operation[int]


def write(value: int, start: float, end: float) -> Register:
    return Operation(f"write {value}", start, end, lambda state: (value,))


def read(value: int, start: float, end: float) -> Register:
    return Operation(f"read {value}", start, end, lambda s: (s,) if s == value else None)


def add(amount: int, found: int, start: float, end: float) -> Register:
    """Return an operation that fetches the register and adds to it."""
    return Operation(
        f"add {amount} to {found}", start, end, lambda s: (s + amount,) if s == found else None
    )


GOOD: dict[str, list[Register]] = {
    "nothing happened": [],
    "one after the other": [write(1, 0, 1), read(1, 2, 3), write(2, 4, 5), read(2, 6, 7)],
    "a read beside a write sees the old value": [write(1, 0, 9), read(0, 1, 2)],
    "a read beside a write sees the new value": [write(1, 0, 9), read(1, 1, 2)],
    "two writes, either may be last": [write(1, 0, 9), write(2, 0, 9), read(1, 10, 11)],
    "old, then new, while the write is in progress": [write(1, 0, 9), read(0, 1, 2), read(1, 3, 4)],
    "a write without an answer took effect": [write(1, 0, NEVER), read(0, 1, 2), read(1, 3, 4)],
    "a write without an answer took no effect": [write(1, 0, NEVER), read(0, 100, 200)],
    "increments that overlap": [add(1, 1, 0, 9), add(1, 0, 1, 8), read(2, 10, 11)],
}
BAD: dict[str, list[Register]] = {
    "a read of a value that was never written": [write(1, 0, 1), read(2, 2, 3)],
    "a stale read": [write(1, 0, 1), read(0, 2, 3)],
    "new, then old": [write(1, 0, 9), read(1, 1, 2), read(0, 3, 4)],
    "two readers disagree on the order": [
        write(1, 0, 3),
        write(2, 0, 3),
        read(1, 4, 5),
        read(2, 6, 7),
    ],
    "an update is lost": [add(1, 0, 0, 9), add(1, 0, 1, 8)],
    "a write without an answer is undone": [
        write(1, 0, NEVER),
        read(1, 1, 2),
        read(0, 3, 4),
    ],
    "a read before the write was requested": [read(1, 0, 1), write(1, 2, NEVER)],
}


@pytest.mark.parametrize("history", GOOD.values(), ids=GOOD)
def test_accepts(history: list[Register]) -> None:
    order = linearization(history, 0)
    assert order is not None
    assert explains(order, 0)


@pytest.mark.parametrize("history", BAD.values(), ids=BAD)
def test_rejects(history: list[Register]) -> None:
    assert linearization(history, 0) is None


def explains(order: list[Register], state: int) -> bool:
    for operation in order:
        after = operation.apply(state)
        if after is None:
            return False
        (state,) = after
    return True


def by_trying_all(history: list[Register]) -> bool:
    """Try every subset with all answered operations, in every order in which an operation that
    ended before another one began comes first."""
    maybe = [each for each in history if not each.answered]
    for count in range(len(maybe) + 1):
        for done in itertools.combinations(maybe, count):
            chosen = [each for each in history if each.answered] + list(done)
            for order in itertools.permutations(chosen):
                in_time = all(a.start <= b.end for a, b in itertools.combinations(order, 2))
                if in_time and explains(list(order), 0):
                    return True
    return False


def test_agrees_with_trying_all_orders() -> None:
    random, verdicts = Random(1), []
    for _ in range(300):
        history = []
        for _ in range(random.randrange(2, 6)):
            start = random.uniform(0, 10)
            end = NEVER if random.random() < 0.2 else start + random.uniform(0, 6)
            kind = random.choice((write, read))
            history.append(kind(random.randrange(0, 3), start, end))
        found = linearization(history, 0) is not None
        assert found == by_trying_all(history), history
        verdicts.append(found)
    assert 50 < sum(verdicts) < 280


def test_a_long_history_is_decided() -> None:
    """The history has ten operations at a time, and five hundred in all."""
    history = [add(1, i, i - 5, i + 5) for i in range(500)]
    assert linearization(history, 0) is not None
    assert linearization([*history, read(7, 600, 601)], 0) is None


def test_many_without_an_answer_are_decided() -> None:
    """Any write without an answer may explain the last reads. Most of these writes were
    overwritten, or never took effect."""
    history: list[Register] = []
    for i in range(30):
        history += [write(i, i, i + 1.5), write(100 + i, i, NEVER)]
    twice = [read(110, 40, 41), read(111, 42, 43)]
    assert linearization([*history, *twice], 0) is not None
    assert linearization([*history, *twice, read(0, 44, 45)], 0) is None


@pytest.mark.parametrize("bound", ["MAX_VISITED", "MAX_COMPARED"])
def test_a_history_of_too_many_orders_is_undecided(
    bound: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No write explains the last read, but the many writes without an answer allow many orders."""
    history = [write(value, 0, NEVER) for value in range(8)] + [read(99, 1, 2)]
    assert linearization(history, 0) is None
    monkeypatch.setattr(linearizability, bound, 5)
    with pytest.raises(Undecided):
        linearization(history, 0)
