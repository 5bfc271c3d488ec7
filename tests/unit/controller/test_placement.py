"""The striped replica placer: its hard limits, and the balance in any cluster."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.quorum.controller.state.result import RequestRefused
from quorate.quorum.controller.topics.placement import Placer, UsableBroker
from quorate.quorum.incremental_work import finished
from quorate.quorum.protocol.errors import ErrorCode

BUDGET = settings(max_examples=60)
RACKS = st.sampled_from([None, "a", "b", "c"])


@st.composite
def clusters(draw: st.DrawFn) -> list[UsableBroker]:
    shape = draw(st.lists(st.tuples(RACKS, st.booleans()), min_size=1, max_size=12))
    brokers = [UsableBroker(index, rack, fenced) for index, (rack, fenced) in enumerate(shape)]
    return [*brokers, UsableBroker(len(brokers), draw(RACKS), fenced=False)]


@BUDGET
@given(clusters(), st.data(), st.integers(0, 2**32))
def test_no_broker_twice_and_an_unfenced_leader(
    brokers: list[UsableBroker], data: st.DataObject, seed: int
) -> None:
    factor = data.draw(st.integers(1, len(brokers)))
    placed = finished(Placer(brokers).place(40, factor, random.Random(seed)))
    unfenced = {broker.id for broker in brokers if not broker.fenced}
    assert len(placed) == 40
    for replicas in placed:
        assert len(set(replicas)) == len(replicas) == factor
        assert replicas[0] in unfenced


@BUDGET
@given(clusters(), st.data(), st.integers(0, 2**32))
def test_each_rack_has_its_share_of_every_partition(
    brokers: list[UsableBroker], data: st.DataObject, seed: int
) -> None:
    """If every rack has enough brokers, the racks' replica counts of a partition differ by one at
    most."""
    brokers = [UsableBroker(broker.id, broker.rack, fenced=False) for broker in brokers]
    sizes = Counter(broker.rack for broker in brokers)
    factor = data.draw(st.integers(1, len(sizes) * min(sizes.values())))
    rack_of = {broker.id: broker.rack for broker in brokers}
    for replicas in finished(Placer(brokers).place(20, factor, random.Random(seed))):
        used = Counter(dict.fromkeys(sizes, 0))
        used.update(rack_of[replica] for replica in replicas)
        assert max(used.values()) - min(used.values()) <= 1


@BUDGET
@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 2**32))
def test_equal_brokers_get_equally_many_replicas_and_leaders(
    count: int, factor: int, seed: int
) -> None:
    factor = min(factor, count)
    brokers = [UsableBroker(index, None, fenced=False) for index in range(count)]
    placed = finished(Placer(brokers).place(3 * count, factor, random.Random(seed)))
    replicas = Counter(replica for each in placed for replica in each)
    leaders = Counter(each[0] for each in placed)
    assert set(replicas.values()) == {3 * factor}
    assert set(leaders.values()) == {3}


def test_fenced_brokers_come_last() -> None:
    brokers = [UsableBroker(index, None, fenced=index >= 3) for index in range(6)]
    for replicas in finished(Placer(brokers).place(30, 4, random.Random(1))):
        assert set(replicas[:3]) == {0, 1, 2}
        assert replicas[3] >= 3


def test_a_rack_whose_brokers_are_used_up_is_skipped() -> None:
    """The rule also holds after the lists were shuffled and a fenced list was unused for long."""
    brokers = [
        UsableBroker(0, "a", fenced=False),
        UsableBroker(1, "a", fenced=False),
        UsableBroker(2, "b", fenced=True),
    ]
    for replicas in finished(Placer(brokers).place(100, 3, random.Random(3))):
        assert sorted(replicas) == [0, 1, 2]


@pytest.mark.parametrize(
    ("fenced", "factor"), [([False, False], 3), ([True, True], 1), ([], 1), ([False], 0)]
)
def test_what_cannot_be_placed(fenced: list[bool], factor: int) -> None:
    brokers = [UsableBroker(index, None, each) for index, each in enumerate(fenced)]
    with pytest.raises(RequestRefused) as refused:
        finished(Placer(brokers).place(1, factor, random.Random(1)))
    assert refused.value.error == ErrorCode.INVALID_REPLICATION_FACTOR
