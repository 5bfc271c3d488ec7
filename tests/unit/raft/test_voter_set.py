"""Majorities, compared with a slow oracle (R26 in tests/scenarios), and directory ids of voters."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.quorum.ids import ZERO_UUID, ReplicaKey
from quorate.quorum.raft.voter_set import NO_OFFSET, VoterSet, majority_offset
from tests.unit.raft.harness import key

SOME = settings(max_examples=200)


@SOME
@given(st.lists(st.integers(NO_OFFSET, 12), min_size=1, max_size=9))
def test_the_majority_offset_is_the_greatest_that_more_than_half_have_reached(
    offsets: list[int],
) -> None:
    def reached_by(offset: int) -> int:
        return sum(each >= offset for each in offsets)

    reached = [each for each in range(NO_OFFSET, 13) if reached_by(each) * 2 > len(offsets)]
    assert majority_offset(offsets) == max(reached)


@SOME
@given(st.sets(st.integers(0, 20), min_size=1, max_size=9))
def test_any_two_majorities_meet(ids: set[int]) -> None:
    voters = VoterSet(key(each) for each in ids)
    assert voters.ids == tuple(sorted(ids))
    assert 2 * voters.majority > len(ids)
    assert 2 * (voters.majority - 1) <= len(ids)


def test_a_directory_that_was_unknown_is_pinned_once() -> None:
    voters = VoterSet((ReplicaKey(1, ZERO_UUID), key(2)))
    assert key(1, 1) in voters
    assert key(1, 2) in voters
    assert not voters.is_impostor(key(1, 2))
    pinned = voters.pin(key(1))
    assert pinned.pinned() == (key(1), key(2))
    assert key(1) in pinned
    assert ReplicaKey(1, ZERO_UUID) in pinned
    assert pinned.is_impostor(key(1, 2))
    assert pinned.pin(key(1, 2)) is pinned
    assert pinned.pin(key(3)) is pinned
    assert not pinned.is_impostor(key(3))
