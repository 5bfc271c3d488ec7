"""The rows of reassignments: progress, and what delays each of them."""

from __future__ import annotations

from quorate.cli.console.views.reassignment_rows import (
    MOVING,
    STALLED,
    STALLED_S,
    Copied,
    copied_after,
    percent_of,
    reassignment_rows,
    waits_for,
)
from quorate.cli.topics.topic_view import PartitionView

PLACE = ("t", 0)
UP = frozenset({1, 2, 3, 4})


def moving(isr: tuple[int, ...] = (1, 2), leader: int | None = 1) -> PartitionView:
    """Return a partition that moves from brokers 1 and 2 to 3 and 4."""
    return PartitionView(
        partition=0, leader=leader, replicas=(3, 4, 1, 2), isr=isr, adding=(3, 4), removing=(1, 2)
    )


def test_the_progress_is_the_share_of_copied_bytes() -> None:
    assert percent_of(moving(), {1: 200}) == 0
    assert percent_of(moving(), {1: 200, 3: 100, 4: 50}) == 37
    assert percent_of(moving((1, 2, 3)), {1: 200, 3: 0, 4: 50}) == 62, "a member of the ISR has all"
    assert percent_of(moving(), {1: 200, 3: 300, 4: 300}) == 99, "not in the ISR yet"
    assert percent_of(moving((1, 2, 3, 4)), {}) == 100
    assert percent_of(moving(leader=None), {3: 5}) == 0


def test_each_replica_that_delays_is_named_with_the_reason() -> None:
    found = list(waits_for(moving(), {1: 200, 3: 100}, UP))
    assert found == [
        "the replica on broker 3, which has 100 of 200 bytes",
        "broker 4, which has no log of it yet",
    ]
    assert list(waits_for(moving((1, 3)), {1: 1, 4: 1}, UP - {4})) == ["broker 4, which is down"]
    assert list(waits_for(moving(leader=None), {}, UP)) == ["a leader of the partition"]
    assert "the controller" in next(iter(waits_for(moving((3, 4)), {}, UP)))


def test_a_reassignment_without_a_copied_byte_is_stalled_and_comes_first() -> None:
    other = ("u", 0)
    both = {PLACE: moving(), other: moving()}
    sizes = {PLACE: {1: 200, 3: 100, 4: 100}, other: {1: 200, 3: 10, 4: 10}}
    copied = copied_after({}, both, sizes, 5.0)
    assert copied == {PLACE: Copied(200, 5.0), other: Copied(20, 5.0)}
    sizes[other][3] = 20
    copied = copied_after(copied, both, sizes, 5.0 + STALLED_S)
    assert copied[PLACE].since_s == 5.0
    rows = reassignment_rows(both, sizes, copied, UP, 5.0 + STALLED_S)
    assert [(row[0], row[2], row[3]) for row in rows] == [("t", STALLED, 50), ("u", MOVING, 7)]
    assert "no byte was copied for 10 s" in str(rows[0][-1])
    assert copied_after(copied, {other: moving()}, sizes, 99.0).keys() == {other}
