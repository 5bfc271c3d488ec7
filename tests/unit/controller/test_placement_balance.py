"""Placement over many topics: leaders and replicas per broker stay within 1 of the even share.

The oracle counts the replicas of the image again after each request. It shares no code with the
placer or its index.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.quorum.controller.topics.placement import Placer, UsableBroker
from quorate.quorum.controller.topics.placement_balance import Balance, BrokerCounts
from quorate.quorum.incremental_work import finished
from quorate.quorum.protocol.schemas.topics import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from tests.unit.controller.harness import Driver, creatable
from tests.unit.controller.test_reassign import ask

BUDGET = settings(max_examples=25)
UNEVEN_LEADERS = 2
"""The bound of the leaders for topics with one replication factor on racks of different sizes."""


def recount(driver: Driver) -> tuple[Counter[int], Counter[int]]:
    """Return the replicas and the preferred leaders of each broker, 0 included."""
    replicas = Counter(dict.fromkeys(driver.image.brokers, 0))
    leaders = Counter(dict.fromkeys(driver.image.brokers, 0))
    for topic in driver.image.topics.values():
        for partition in topic.partitions.values():
            replicas.update(partition.replicas)
            leaders[partition.replicas[0]] += 1
    return replicas, leaders


def distance(counts: Counter[int]) -> float:
    """Return the largest distance of a count from the even share."""
    even = sum(counts.values()) / len(counts)
    return max(abs(count - even) for count in counts.values())


def racked(racks: int, brokers_per_rack: int) -> Driver:
    driver = Driver()
    for number in range(racks * brokers_per_rack):
        driver.start(number + 1, rack=f"rack{number % racks}" if racks > 1 else None)
    return driver


def check_index(driver: Driver) -> None:
    replicas, leaders = recount(driver)
    index = driver.controller.index
    assert index.replicas == +replicas
    assert +index.preferred == +leaders


def make(driver: Driver, name: str, partitions: int, factor: int) -> None:
    topics = (creatable(name, partitions=partitions, replication_factor=factor),)
    response = driver.handle(CreateTopicsRequest(topics=topics))
    assert response.topics[0].error_code == 0, response


def delete(driver: Driver, name: str) -> None:
    request = DeleteTopicsRequest(topics=(DeleteTopicState(name=name),), timeout_ms=0)
    response = driver.handle(request)
    assert response.responses[0].error_code == 0


@dataclass(frozen=True)
class Shape:
    racks: int
    brokers_per_rack: int
    factor: int


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    racks, size = draw(st.sampled_from([1, 1, 2, 3, 4])), draw(st.integers(1, 4))
    return Shape(racks, size, draw(st.integers(1, min(5, racks * size))))


@BUDGET
@given(shapes(), st.data())
def test_topics_created_one_by_one_keep_the_balance(shape: Shape, data: st.DataObject) -> None:
    driver = racked(shape.racks, shape.brokers_per_rack)
    sizes = data.draw(st.lists(st.integers(1, 20) | st.just(1), min_size=5, max_size=40))
    for number, partitions in enumerate(sizes):
        make(driver, f"t{number}", partitions, shape.factor)
        replicas, leaders = recount(driver)
        assert distance(replicas) <= 1, replicas
        assert distance(leaders) <= 1, leaders
    check_index(driver)


@BUDGET
@given(shapes(), st.data())
def test_topics_created_in_one_request_keep_the_balance(shape: Shape, data: st.DataObject) -> None:
    driver = racked(shape.racks, shape.brokers_per_rack)
    batches = data.draw(st.lists(st.lists(st.integers(1, 9), max_size=20), max_size=5))
    for number, sizes in enumerate(batches):
        topics = tuple(
            creatable(f"t{number}-{each}", partitions=size, replication_factor=shape.factor)
            for each, size in enumerate(sizes)
        )
        driver.handle(CreateTopicsRequest(topics=topics))
        replicas, leaders = recount(driver)
        assert distance(replicas) <= 1, replicas
        assert distance(leaders) <= 1, leaders


@BUDGET
@given(shapes(), st.data())
def test_new_topics_fill_what_deleted_topics_left(shape: Shape, data: st.DataObject) -> None:
    """A topic with one partition goes where partitions are missing. Enough of them restore the
    balance, because each one brings the total closer to it."""
    driver = racked(shape.racks, shape.brokers_per_rack)
    brokers = shape.racks * shape.brokers_per_rack
    for number in range(20):
        make(driver, f"t{number}", data.draw(st.integers(1, 5)), shape.factor)
    for number in data.draw(st.sets(st.integers(0, 19))):
        delete(driver, f"t{number}")
    replicas, leaders = recount(driver)
    missing = sum(max(each.values()) * brokers - sum(each.values()) for each in (replicas, leaders))
    for number in range(2 * missing):
        make(driver, f"later{number}", 1, shape.factor)
    replicas, leaders = recount(driver)
    assert distance(replicas) <= 1, replicas
    assert distance(leaders) <= 1, leaders
    check_index(driver)


def mixed(draw: st.DataObject, driver: Driver) -> Iterator[tuple[Counter[int], Counter[int]]]:
    """Create topics of different sizes and factors. Yield the counts after each."""
    brokers = len(driver.image.brokers)
    factors = draw.draw(st.lists(st.integers(1, brokers), min_size=1, max_size=4))
    for number in range(40):
        factor = draw.draw(st.sampled_from(factors))
        make(driver, f"t{number}", draw.draw(st.integers(1, 7)), factor)
        yield recount(driver)


@BUDGET
@given(st.sampled_from([(1, each) for each in range(1, 8)] + [(3, 1), (5, 1)]), st.data())
def test_different_replication_factors_keep_the_balance(
    shape: tuple[int, int], data: st.DataObject
) -> None:
    for replicas, leaders in mixed(data, racked(*shape)):
        assert max(replicas.values()) - min(replicas.values()) <= 1, replicas
        assert max(leaders.values()) - min(leaders.values()) <= 1, leaders


@BUDGET
@given(st.sampled_from([(2, 2), (2, 4), (3, 2), (3, 3), (4, 4)]), st.data())
def test_different_replication_factors_on_racks_of_one_size(
    shape: tuple[int, int], data: st.DataObject
) -> None:
    for replicas, leaders in mixed(data, racked(*shape)):
        assert max(replicas.values()) - min(replicas.values()) <= 1, replicas
        assert distance(leaders) <= 1, leaders


@pytest.mark.parametrize(("racks", "size"), [(2, 2), (3, 2), (2, 3), (2, 4), (3, 3), (4, 2)])
def test_all_sequences_of_factors_keep_the_balance_of_racks(racks: int, size: int) -> None:
    """Try each factor in each state that a sequence of factors leads to, apart from the names of
    racks and brokers, and from the counts that all brokers have."""
    begin = (((0, 0),) * size,) * racks
    seen, left = {begin}, [begin]
    while left:
        state = left.pop()
        for factor in range(1, racks * size + 1):
            counts = [
                BrokerCounts(
                    id=10 * rack + each, rack=str(rack), fenced=False, replicas=have, leaders=lead
                )
                for rack, brokers in enumerate(state)
                for each, (have, lead) in enumerate(brokers)
            ]
            Balance(counts, random.Random(factor)).place(factor)
            assert distance(leaders_of(counts)) <= 1, (state, factor)
            low = min(each.replicas for each in counts), min(each.leaders for each in counts)
            assert max(each.replicas for each in counts) - low[0] <= 1, (state, factor)
            pairs = [(each.replicas - low[0], each.leaders - low[1]) for each in counts]
            racked = (sorted(pairs[size * each : size * (each + 1)]) for each in range(racks))
            after = tuple(sorted(tuple(each) for each in racked))
            if after not in seen:
                seen.add(after)
                left.append(after)
    assert len(seen) >= racks * size


@pytest.mark.parametrize(("racks", "size"), [(4, 4), (8, 4), (3, 10), (5, 8)])
def test_random_sequences_keep_the_balance_of_larger_racks(racks: int, size: int) -> None:
    for seed in range(6):
        counts, chance = uneven([size] * racks), random.Random(seed)
        factors = [chance.randint(1, 6) for _ in range(chance.randint(1, 4))]
        for _ in range(60):
            topic = Balance(counts, chance)
            for _ in range(chance.randint(1, 7)):
                topic.place(chance.choice(factors))
                assert distance(leaders_of(counts)) <= 1, leaders_of(counts)


@BUDGET
@given(st.lists(st.integers(1, 4), min_size=2, max_size=4), st.data())
def test_different_replication_factors_on_racks_of_different_sizes(
    sizes: list[int], data: st.DataObject
) -> None:
    driver = Driver()
    for rack, size in enumerate(sizes):
        for number in range(size):
            driver.start(10 * rack + number, rack=str(rack))
    for replicas, _ in mixed(data, driver):
        for rack in range(len(sizes)):
            inside = [count for broker, count in replicas.items() if broker // 10 == rack]
            assert max(inside) - min(inside) <= 1, replicas


def uneven(sizes: Sequence[int]) -> list[BrokerCounts]:
    """Return brokers without partitions, in racks of these sizes. Broker 20 is in rack 2."""
    return [
        BrokerCounts(id=10 * rack + number, rack=str(rack), fenced=False)
        for rack, size in enumerate(sizes)
        for number in range(size)
    ]


def leaders_of(counts: Sequence[BrokerCounts]) -> Counter[int]:
    return Counter({each.id: each.leaders for each in counts})


@BUDGET
@given(st.lists(st.integers(1, 5), min_size=2, max_size=5), st.integers(1, 5), st.integers(0, 99))
def test_one_replication_factor_keeps_the_leaders_even_on_racks_of_different_sizes(
    sizes: list[int], factor: int, seed: int
) -> None:
    counts, chance = uneven(sizes), random.Random(seed)
    for _ in range(12):
        topic = Balance(counts, chance)
        for _ in range(chance.randrange(1, 9)):
            topic.place(min(factor, len(counts)))
            assert distance(leaders_of(counts)) <= UNEVEN_LEADERS, leaders_of(counts)


def test_different_factors_have_no_bound_of_leaders_on_racks_of_different_sizes() -> None:
    """The broker of the small rack stores each of the first 400 partitions, as the others do
    together. So partitions with one replica, and their leaderships, go to the others."""
    counts, chance = uneven([1, 3]), random.Random(1)
    for factor in [2] * 400 + [1] * 400:
        Balance(counts, chance).place(factor)
    (small, *others) = counts
    assert small.replicas == 400 and small.leaders == 100
    assert sum(each.replicas for each in others) == 800
    assert all(each.leaders > 230 for each in others)


def test_all_sequences_of_factors_keep_the_balance() -> None:
    """Any sequence leads to n * n states, apart from the names of the brokers. Try each factor in
    each of them."""
    for brokers in range(1, 6):
        begin = ((0, 0),) * brokers
        seen, left = {begin}, [begin]
        while left:
            state = left.pop()
            for factor in range(1, brokers + 1):
                counts = [
                    BrokerCounts(id=each, rack=None, fenced=False, replicas=have, leaders=lead)
                    for each, (have, lead) in enumerate(state)
                ]
                Balance(counts, random.Random(factor)).place(factor)
                replicas, leaders = (
                    [each.replicas for each in counts],
                    [each.leaders for each in counts],
                )
                assert max(replicas) - min(replicas) <= 1, (state, factor)
                assert max(leaders) - min(leaders) <= 1, (state, factor)
                low = (min(replicas), min(leaders))
                pairs = zip(replicas, leaders, strict=True)
                after = tuple(sorted((have - low[0], lead - low[1]) for have, lead in pairs))
                if after not in seen:
                    seen.add(after)
                    left.append(after)
        assert len(seen) == brokers * brokers


def test_kafkas_random_start_would_drift() -> None:
    """The test above can fail: random starts leave 600 topics of one partition far from even."""
    chance = random.Random(1)
    counts = Counter(dict.fromkeys(range(6), 0))
    for _ in range(600):
        counts[chance.randrange(6)] += 1
    assert distance(counts) > 2


def test_growth_manual_assignments_and_reassignments_count() -> None:
    driver = racked(1, 4)
    driver.create("manual", (1, 2), (1, 2), (1, 3))
    make(driver, "t", 4, 2)
    grow = CreatePartitionsTopic(name="t", count=9, assignments=None)
    driver.handle(CreatePartitionsRequest(topics=(grow,), timeout_ms=0, validate_only=False))
    check_index(driver)
    replicas, leaders = recount(driver)
    assert distance(replicas) <= 1
    assert distance(leaders) <= 1, leaders
    ask(driver, (0, (3, 4)))
    check_index(driver)
    delete(driver, "t")
    check_index(driver)


def test_the_topics_of_one_request_count_each_other() -> None:
    driver = racked(1, 4)
    topics = (
        creatable("manual", partitions=-1, replication_factor=-1, assignments=((1,), (2,), (3,))),
        creatable("placed", partitions=1, replication_factor=1),
    )
    driver.handle(CreateTopicsRequest(topics=topics))
    assert driver.partition("placed").replicas == (4,)


def test_a_new_broker_does_not_get_a_whole_topic() -> None:
    """It has no partitions, but a topic of 12 partitions does not all go there."""
    driver = racked(1, 3)
    for number in range(50):
        make(driver, f"t{number}", 3, 2)
    driver.start(9)
    make(driver, "next", 12, 2)
    topic = driver.image.topic("next")
    assert topic is not None
    placed = Counter(replica for each in topic.partitions.values() for replica in each.replicas)
    leaders = Counter(each.leader for each in topic.partitions.values())
    assert 6 < placed[9] <= 8
    assert 3 < leaders[9] <= 6
    for number in range(200):
        make(driver, f"later{number}", 1, 2)
    replicas, leads = recount(driver)
    assert distance(replicas) <= 1, replicas
    assert distance(leads) <= 1, leads


def test_leaders_are_even_where_racks_are_not() -> None:
    """The single broker of a rack stores a replica of every partition, but leads its share only."""
    brokers = [UsableBroker(each, "a" if each < 4 else "b", fenced=False) for each in range(5)]
    placer = Placer(brokers)
    chance = random.Random(1)
    placed = [each for _ in range(30) for each in finished(placer.place(5, 2, chance))]
    assert Counter(each[0] for each in placed) == dict.fromkeys(range(5), 30)
    replicas = Counter(replica for each in placed for replica in each)
    assert replicas[4] == 150
    assert {replicas[each] for each in range(4)} <= {37, 38}


def test_fenced_brokers_neither_lead_nor_disturb_the_balance() -> None:
    brokers = [UsableBroker(each, None, fenced=each >= 3) for each in range(5)]
    placer = Placer(brokers, {3: 500}, {4: 70})
    chance = random.Random(1)
    placed = [each for _ in range(40) for each in finished(placer.place(3, 3, chance))]
    replicas = Counter(replica for each in placed for replica in each)
    assert replicas == {0: 120, 1: 120, 2: 120}
    assert set(Counter(each[0] for each in placed).values()) == {40}


def test_replica_sets_differ() -> None:
    """The partitions of a broker that fails have their other replicas on all other brokers."""
    brokers = [UsableBroker(each, None, fenced=False) for each in range(6)]
    placed = finished(Placer(brokers).place(60, 3, random.Random(1)))
    assert len({frozenset(each) for each in placed}) > 10


@pytest.mark.parametrize("racks", [1, 3, 300])
def test_a_partition_costs_little_in_a_large_cluster(racks: int) -> None:
    """The number of comparisons of a partition grows with the logarithm of the brokers."""

    class Counting(random.Random):
        drawn = 0

        def random(self) -> float:
            Counting.drawn += 1
            return super().random()

    brokers = [UsableBroker(each, str(each % racks), fenced=False) for each in range(300)]
    placer, chance = Placer(brokers), Counting(1)
    finished(placer.place(1, 3, chance))
    Counting.drawn = 0
    for _ in range(100):
        finished(placer.place(1, 3, chance))
    assert Counting.drawn <= 100 * 10
