"""The replicas and brokers that a throttled reassignment lists, as Kafka's tool does."""

from __future__ import annotations

from quorate.cli.reassign.reassignments import Ongoing
from quorate.cli.reassign.throttles import Move, brokers_of, proposed_moves, throttled_lists

CURRENT = {("t", 0): (1, 2), ("t", 1): (2, 3), ("u", 0): (1,)}


def test_sources_and_destinations_of_a_plan() -> None:
    moves = proposed_moves({}, {("t", 0): (2, 4), ("t", 1): (3, 2), ("u", 0): (5,)}, CURRENT)
    assert moves == {
        ("t", 0): Move(frozenset({1, 2}), frozenset({4})),
        ("t", 1): Move(frozenset({2, 3}), frozenset()),
        ("u", 0): Move(frozenset({1}), frozenset({5})),
    }
    assert throttled_lists(moves) == {"t": ("0:1,0:2,1:2,1:3", "0:4"), "u": ("0:1", "0:5")}
    assert brokers_of(moves) == [1, 2, 3, 4, 5]


def test_kafka_10779_a_running_move_keeps_its_sources() -> None:
    """The replicas that are being added now may still lack records, so they are no sources."""
    ongoing = {
        ("t", 0): Ongoing(replicas=(4, 1, 2), adding=(4,), removing=(1,)),
        ("v", 7): Ongoing(replicas=(9, 8), adding=(9,), removing=(8,)),
    }
    moves = proposed_moves(ongoing, {("t", 0): (2, 5)}, {("t", 0): (4, 1, 2)})
    assert moves == {
        ("t", 0): Move(frozenset({1, 2}), frozenset({5})),
        ("v", 7): Move(frozenset({8}), frozenset({9})),
    }
    assert throttled_lists(moves) == {"t": ("0:1,0:2", "0:5"), "v": ("7:8", "7:9")}


def test_lists_are_sorted_as_texts() -> None:
    moves = {("t", each): Move(frozenset({1}), frozenset()) for each in (2, 10)}
    assert throttled_lists(moves) == {"t": ("10:1,2:1", "")}
