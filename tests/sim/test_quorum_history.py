"""The checker of the voters, with histories whose verdict is known."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from quorate.quorum.ids import ReplicaKey, Uuid
from quorate.quorum.node.controller.voter_admin import NOT_IN_TIME
from quorate.quorum.protocol.errors import ErrorCode
from tests.sim.checks.invariants import Election, Violation
from tests.sim.checks.quorum_history import QuorumHistory, Voting, added, removed, upgraded


def key(voter_id: int, number: int = 1) -> ReplicaKey:
    return ReplicaKey(voter_id, Uuid(bytes(15) + bytes([number])))


ONE, TWO, THREE, FOUR = map(key, (1, 2, 3, 4))
LATE = (ErrorCode.REQUEST_TIMED_OUT, NOT_IN_TIME)
NOT_YET = (ErrorCode.REQUEST_TIMED_OUT, "replica 4 has not caught up")
DONE = (ErrorCode.NONE, "")


class Told:
    """A history under construction. Node 1 leads from the start, until `elected` names another
    leader."""

    def __init__(self, kraft_version: int = 1) -> None:
        self.history = QuorumHistory(
            Voting(kraft_version, frozenset((ONE, TWO, THREE))), [Election(0.0, 1, 1)]
        )

    def add(
        self, who: ReplicaKey, start: float, end: float, answer: tuple[int, str] | None = DONE
    ) -> Told:
        self.history.told(f"add {who.id}", added(who), who, 1, start, end, answer)
        return self

    def remove(
        self, who: ReplicaKey, start: float, end: float, answer: tuple[int, str] | None = DONE
    ) -> Told:
        self.history.told(f"remove {who.id}", removed(who), who, 1, start, end, answer)
        return self

    def upgrade(self, start: float, end: float) -> Told:
        self.history.told("upgrade", upgraded, None, 1, start, end, DONE)
        return self

    def describe(self, start: float, end: float, *voters: ReplicaKey, by: int = 1) -> Told:
        self.history.described(voters, by, start, end)
        return self

    def elected(self, at_s: float, epoch: int, leader_id: int) -> Told:
        self.history.elections.append(Election(at_s, epoch, leader_id))
        return self


def no(error: ErrorCode) -> tuple[int, str]:
    return error, ""


ALL = (ONE, TWO, THREE, FOUR)
EXPLAINED: dict[str, Callable[[], Told]] = {
    "one change after the other": lambda: (
        Told().add(FOUR, 0, 1).describe(2, 3, *ALL).remove(ONE, 4, 5).describe(6, 7, *ALL[1:])
    ),
    "a leader describes a change that is not committed yet": lambda: (
        Told().describe(1, 2, *ALL).describe(3, 4, ONE, TWO, THREE).add(FOUR, 0, 9)
    ),
    "a request without an answer may have succeeded": lambda: (
        Told().add(FOUR, 0, 1, None).describe(2, 3, *ALL).remove(FOUR, 4, 5)
    ),
    "a change that may have been made later": lambda: (
        Told().add(FOUR, 0, 1, LATE).remove(FOUR, 4, 5)
    ),
    "a change that was not made": lambda: (
        Told().add(FOUR, 0, 1, NOT_YET).describe(2, 3, ONE, TWO, THREE)
    ),
    "a deposed leader describes the old voters": lambda: (
        Told().elected(1.0, 2, 2).add(FOUR, 2, 3).describe(4, 5, ONE, TWO, THREE)
    ),
    "a deposed leader refuses a change by the old voters": lambda: (
        Told()
        .elected(1.0, 2, 2)
        .remove(THREE, 2, 3)
        .add(THREE, 4, 5, no(ErrorCode.DUPLICATE_VOTER))
    ),
    "upgraded, then changed": lambda: (
        Told(0)
        .add(FOUR, 0, 1, no(ErrorCode.UNSUPPORTED_VERSION))
        .upgrade(2, 3)
        .upgrade(3, 4)
        .add(FOUR, 4, 5)
    ),
    "another directory is another voter": lambda: (
        Told()
        .remove(key(3, 2), 0, 1, no(ErrorCode.VOTER_NOT_FOUND))
        .add(key(3, 2), 2, 3, no(ErrorCode.DUPLICATE_VOTER))
        .remove(THREE, 4, 5)
        .add(key(3, 2), 6, 7)
    ),
}
WRONG: dict[str, Callable[[], Told]] = {
    "a voter for which no request asked": lambda: Told().describe(1, 2, *ALL),
    "an added voter is not there": lambda: Told().add(FOUR, 0, 1).describe(2, 3, ONE, TWO, THREE),
    "a removed voter is back": lambda: (
        Told().add(FOUR, 0, 1).remove(FOUR, 2, 3).describe(4, 5, *ALL)
    ),
    "a voter is described before the request": lambda: Told().describe(0, 1, *ALL).add(FOUR, 2, 3),
    "two at once, of which one is committed": lambda: (
        Told().add(FOUR, 0, 9).add(key(5), 0, 9).describe(1, 2, *ALL, key(5), key(6))
    ),
    "a voter was added twice": lambda: Told().add(FOUR, 0, 1).add(FOUR, 2, 3),
    "two directories of one id": lambda: Told().add(key(3, 2), 0, 1),
    "a stranger was removed": lambda: Told().remove(FOUR, 0, 1),
    "the last one was removed": lambda: (
        Told().remove(ONE, 0, 1).remove(TWO, 2, 3).remove(THREE, 4, 5)
    ),
    "DUPLICATE_VOTER for a replica that is no voter": lambda: Told().add(
        FOUR, 0, 1, no(ErrorCode.DUPLICATE_VOTER)
    ),
    "VOTER_NOT_FOUND for a voter": lambda: Told().remove(ONE, 0, 1, no(ErrorCode.VOTER_NOT_FOUND)),
    "a change before the upgrade": lambda: Told(0).add(FOUR, 0, 1).upgrade(2, 3),
    "downgraded": lambda: Told(0).upgrade(0, 1).add(FOUR, 2, 3, no(ErrorCode.UNSUPPORTED_VERSION)),
    "an answer and its opposite": lambda: (
        Told().add(FOUR, 0, 1, LATE).describe(2, 3, *ALL).remove(FOUR, 4, 5).remove(FOUR, 6, 7)
    ),
    "the present leader describes the old voters": lambda: (
        Told().elected(1.0, 2, 2).add(FOUR, 2, 3).describe(4, 5, ONE, TWO, THREE, by=2)
    ),
    "a deposed leader describes a later change": lambda: (
        Told().elected(1.0, 2, 2).describe(2, 3, *ALL).add(FOUR, 4, 5)
    ),
}


@pytest.mark.parametrize("told", EXPLAINED.values(), ids=EXPLAINED)
def test_an_order_explains(told: Callable[[], Told]) -> None:
    assert told().history.check(None, 100.0)


@pytest.mark.parametrize("told", WRONG.values(), ids=WRONG)
def test_no_order_explains(told: Callable[[], Told]) -> None:
    with pytest.raises(Violation, match="no order explains the voters"):
        told().history.check(None, 100.0)


def test_what_is_there_at_the_end_is_explained_too() -> None:
    voters = frozenset(ALL)
    assert Told().add(FOUR, 0, 1).history.check(Voting(1, voters), 100.0)
    assert Told().add(FOUR, 0, 1, LATE).history.check(Voting(1, voters), 100.0)
    for history in (Told().history, Told().add(FOUR, 0, 1, NOT_YET).history):
        with pytest.raises(Violation):
            history.check(Voting(1, voters), 100.0)
    with pytest.raises(Violation):
        Told().add(FOUR, 0, 1).history.check(Voting(0, voters), 100.0)


def test_a_rebuilt_quorum_begins_anew() -> None:
    told = Told().add(FOUR, 0, 1)
    told.history.begin_anew(Voting(1, frozenset((ONE,))))
    assert told.describe(2, 3, ONE).history.check(Voting(1, frozenset((ONE,))), 100.0)
    wrong = Told().remove(FOUR, 0, 1)
    with pytest.raises(Violation):
        wrong.history.begin_anew(Voting(1, frozenset((ONE,))))
