"""The rule that completes a reassignment."""

from __future__ import annotations

import pytest

from quorate.quorum.controller.partitions.reassignment_completion import Completion, completion

Ids = tuple[int, ...]


@pytest.mark.parametrize(
    ("isr", "complete"),
    [
        ((1, 2, 3), None),
        ((1, 2, 3, 4), Completion((3, 4), (3, 4))),  # everything that is to stay is in the ISR
        ((4, 3), Completion((4, 3), (3, 4))),  # the order of the ISR and the assignment stays
        ((1, 4), None),  # 3 was there before and is not in sync: all, not merely the adding ones
        ((1,), None),
        ((), None),
    ],
)
def test_a_reassignment_is_complete_when_all_that_stay_are_in_sync(
    isr: Ids, complete: Completion | None
) -> None:
    assert completion(isr, (3, 4, 1, 2), removing=(1, 2), adding=(4,)) == complete


@pytest.mark.parametrize(
    ("removing", "adding", "complete"),
    [
        ((), (2,), Completion((1, 2), (1, 2))),
        ((1,), (), Completion((2,), (2,))),
        ((), (), None),  # no reassignment is running
        ((1, 2), (), None),  # the assignment would become empty
    ],
)
def test_a_reassignment_may_only_add_or_only_remove(
    removing: Ids, adding: Ids, complete: Completion | None
) -> None:
    assert completion((1, 2), (1, 2), removing=removing, adding=adding) == complete


def test_a_completion_empties_neither_the_isr_nor_the_assignment() -> None:
    assert completion((1,), (1, 2), removing=(1,), adding=(2,)) is None
    assert completion((3,), (1,), removing=(1,), adding=()) is None
