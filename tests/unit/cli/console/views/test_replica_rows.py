"""The rows of replicas: those that are out of sync first, then the largest lag."""

from __future__ import annotations

from quorate.cli.console.views.replica_rows import (
    ADDED,
    IN_SYNC,
    LEADER,
    OUT_OF_SYNC,
    UNKNOWN,
    lag_of,
    next_places,
    replica_rows,
)
from quorate.cli.topics.topic_view import PartitionView


def of(leader: int | None, isr: tuple[int, ...], adding: tuple[int, ...] = ()) -> PartitionView:
    return PartitionView(partition=0, leader=leader, replicas=(1, 2, 3), isr=isr, adding=adding)


def test_replicas_that_are_out_of_sync_come_first_with_the_largest_lag() -> None:
    partitions = {("a", 0): of(1, (1, 2)), ("b", 0): of(1, (1, 2), (3,)), ("c", 0): of(1, (1,))}
    ends = {("a", 0): {1: 9, 2: 7, 3: 1}, ("b", 0): {1: 9, 2: 9, 3: 3}, ("c", 0): {1: 9, 2: 8}}
    rows = [(row[0], row[2], row[3], row[4]) for row in replica_rows(partitions, ends)]
    assert rows == [
        ("c", 3, OUT_OF_SYNC, UNKNOWN),
        ("a", 3, OUT_OF_SYNC, 8),
        ("c", 2, OUT_OF_SYNC, 1),
        ("b", 3, ADDED, 6),
        ("a", 2, IN_SYNC, 2),
        ("a", 1, LEADER, 0),
        ("b", 1, LEADER, 0),
        ("b", 2, IN_SYNC, 0),
        ("c", 1, LEADER, 0),
    ]


def test_a_lag_needs_the_ends_of_the_leader_and_of_the_replica() -> None:
    assert lag_of(of(None, ()), {1: 5, 2: 5}, 2) is None
    assert lag_of(of(1, (1,)), {2: 5}, 2) is None
    assert lag_of(of(1, (1,)), {1: 5}, 2) is None
    assert lag_of(of(1, (1,)), {1: 5, 2: 6}, 2) == 0, "it was read later than the leader's end"


def test_the_urgent_partitions_are_always_read_and_the_others_in_turns() -> None:
    partitions = {("t", number): of(1, (1,)) for number in range(5)}
    urgent = [("t", 3)]
    first = next_places(partitions, urgent, None, 3)
    assert first == [("t", 3), ("t", 0), ("t", 1)]
    second = next_places(partitions, urgent, first[-1], 3)
    assert second == [("t", 3), ("t", 2), ("t", 4)]
    assert next_places(partitions, urgent, second[-1], 3) == first
