"""The checks of a group's assignments and offsets, with right and with wrong histories."""

from __future__ import annotations

import pytest

from tests.sim.checks.committed_log import Violation
from tests.sim.workloads.group_book import NOTHING, GroupBook

A, B = "a", "b"
EVEN = {A: frozenset({0, 2}), B: frozenset({1})}
ODD = {A: frozenset({1}), B: frozenset({0, 2})}


@pytest.fixture
def book() -> GroupBook:
    """Return a book in which generation 1 has an assignment, and its owner of partition 0 has
    committed two offsets."""
    made = GroupBook("g")
    made.leader_sends(1, EVEN)
    made.synced(1, A, {0, 2})
    for _ in range(2):
        made.commit_acknowledged(1, 0, made.next_commit(1, 0))
    return made


def second_generation(book: GroupBook) -> None:
    book.leader_sends(2, ODD)
    book.synced(2, B, {0, 2})


def test_all_members_get_parts_of_one_assignment(book: GroupBook) -> None:
    book.leader_sends(1, ODD)  # another leader sends this after a coordinator that recorded nothing
    book.synced(1, B, {1})
    with pytest.raises(Violation, match="b owns \\[0, 2\\], and the assignments are"):
        book.synced(1, B, {0, 2})


def test_two_owners_of_a_partition(book: GroupBook) -> None:
    book.leader_sends(3, {A: frozenset({0}), B: frozenset({0})})
    book.synced(3, A, {0})
    with pytest.raises(Violation, match="partition 0 has two owners, a and b"):
        book.synced(3, B, {0})


def test_an_assignment_that_no_leader_sent(book: GroupBook) -> None:
    with pytest.raises(Violation, match="generation 2: a owns"):
        book.synced(2, A, {0})


def test_offsets_that_go_back(book: GroupBook) -> None:
    assert book.fetched(1, 0, 2)
    for lost in (1, NOTHING):
        with pytest.raises(Violation, match=f"finds offset {lost}; 2 was committed last"):
            book.fetched(1, 0, lost)


def test_a_commit_without_an_answer_may_take_effect_late(book: GroupBook) -> None:
    unknown = book.next_commit(1, 0)
    book.commit_acknowledged(1, 0, book.next_commit(1, 0))
    assert book.fetched(1, 0, unknown)


def test_a_commit_that_was_refused_takes_no_effect(book: GroupBook) -> None:
    refused = book.next_commit(1, 0)
    book.commit_refused(0, refused)
    with pytest.raises(Violation, match="finds offset 3"):
        book.fetched(1, 0, refused)


def test_no_commit_takes_effect_after_the_next_owner_has_fetched(book: GroupBook) -> None:
    late = book.next_commit(1, 0)
    second_generation(book)
    assert book.fetched(2, 0, 2)
    with pytest.raises(Violation, match="generation 2 finds offset 3; 2 was committed last"):
        book.fetched(2, 0, late)


def test_an_acknowledged_commit_that_the_next_owner_did_not_find(book: GroupBook) -> None:
    late = book.next_commit(1, 0)
    second_generation(book)
    assert book.fetched(2, 0, 2)
    with pytest.raises(Violation, match="generation 2 did not find it"):
        book.commit_acknowledged(1, 0, late)


def test_the_next_owner_may_find_an_older_commit_that_came_late(book: GroupBook) -> None:
    late, last = book.next_commit(1, 0), book.next_commit(1, 0)
    second_generation(book)
    assert book.fetched(2, 0, late)
    book.commit_acknowledged(1, 0, last)
    assert book.offset(0) == late


def test_answers_of_a_deposed_coordinator_are_not_compared(book: GroupBook) -> None:
    second_generation(book)
    assert not book.fetched(1, 0, NOTHING)
