"""Plans of reassignments: the properties of every plan, and typical cases."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.cli.reassign.plan import (
    Assignment,
    Impossible,
    Racks,
    replica_counts,
    resized,
    spread,
)

FOUR: Racks = dict.fromkeys((4, 5, 6, 7))


def topic(*replicas: tuple[int, ...]) -> Assignment:
    """Return the assignment of topic t with these replicas."""
    return {("t", number): each for number, each in enumerate(replicas)}


def test_what_may_stay_stays() -> None:
    before = topic((4, 5, 6), (5, 6, 4))
    assert spread(before, dict.fromkeys((4, 5, 6))) == before
    assert spread(before, dict.fromkeys((5, 6, 7))) == topic((5, 6, 7), (6, 5, 7))


def test_new_brokers_get_their_share() -> None:
    plan = spread(topic((4, 5), (5, 4), (4, 5), (5, 4)), FOUR)
    assert replica_counts(plan.values()) == {4: 2, 5: 2, 6: 2, 7: 2}
    assert Counter(each[0] for each in plan.values()) == {4: 1, 5: 1, 6: 1, 7: 1}


def test_racks_differ() -> None:
    racks: Racks = {4: "a", 5: "a", 6: "b", 7: "b"}
    loads = Counter({4: 1, 5: 0, 6: 5, 7: 4})
    assert resized(topic((4,)), racks, 2, loads) == topic((4, 7))
    assert resized(topic((4,)), racks, 3, loads) == topic((4, 7, 5))


def test_a_greater_factor_moves_nothing() -> None:
    loads = Counter({4: 2, 5: 2, 6: 0, 7: 1})
    assert resized(topic((4, 5), (5, 4)), FOUR, 3, loads) == topic((4, 5, 6), (5, 4, 6))


def test_a_smaller_factor_drops_the_dead_and_the_loaded() -> None:
    loads = Counter({4: 1, 5: 9, 6: 3, 9: 1})
    assert resized(topic((4, 5, 6)), FOUR, 2, loads) == topic((4, 6)), "5 has most"
    assert resized(topic((9, 5, 6)), FOUR, 2, loads) == topic((5, 6)), "9 is dead"


def test_what_is_impossible() -> None:
    with pytest.raises(Impossible, match="Replication factor: 5 larger than available brokers: 4"):
        resized(topic((4,)), FOUR, 5, Counter())
    with pytest.raises(Impossible):
        spread(topic((4, 5, 6)), dict.fromkeys((4, 5)))


clusters = st.integers(1, 3).flatmap(
    lambda factor: st.tuples(
        st.lists(
            st.permutations(range(6)).map(lambda order: tuple(order[:factor])),
            min_size=1,
            max_size=12,
        ),
        st.sets(st.integers(0, 8), min_size=factor).map(
            lambda ids: {each: str(each % 3) if 7 in ids else None for each in sorted(ids)}
        ),
    )
)


@settings(max_examples=150)
@given(clusters)
def test_every_plan_is_valid_and_even(case: tuple[list[tuple[int, ...]], dict[int, str]]) -> None:
    replicas, racks = case
    before = topic(*replicas)
    for plan in (spread(before, racks), resized(before, racks, len(replicas[0]), Counter())):
        for key, chosen in plan.items():
            assert len(set(chosen)) == len(chosen) == len(before[key])
    plan = spread(before, racks)
    assert all(each in racks for chosen in plan.values() for each in chosen)
    if not any(racks.values()):
        counts = replica_counts(plan.values())
        loads = [counts[each] for each in racks]
        assert max(loads) - min(loads) <= len(replicas[0])
