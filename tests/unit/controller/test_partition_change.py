"""Leader election and the change record of one partition: tables, and invariants of any
partition."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.quorum.controller.partitions.elections import Candidates, Elected, Election, elect
from quorate.quorum.controller.partitions.partition_change import Target, partition_change
from quorate.quorum.ids import Uuid
from quorate.quorum.metadata.causes import Cause
from quorate.quorum.metadata.image import Broker, MetadataImage, Partition
from quorate.quorum.metadata.records import (
    NO_LEADER,
    NO_LEADER_CHANGE,
    RECOVERED,
    RECOVERING,
    PartitionChangeRecord,
)
from quorate.quorum.metadata.replay import merge
from tests.unit.controller.harness import uuid

BUDGET = settings(max_examples=150)
KEY = (uuid(1), 0)
ONLINE, PREFERRED, UNCLEAN = Election.ONLINE, Election.PREFERRED, Election.UNCLEAN


@pytest.mark.parametrize(
    ("election", "leader", "isr", "alive", "elected"),
    [
        (ONLINE, 2, (1, 2, 3), {1, 2, 3}, Elected(2)),  # a valid leader stays
        (ONLINE, 2, (1, 2, 3), {1, 3}, Elected(1)),  # in the order of assignment
        (ONLINE, 2, (3, 1), {1, 3}, Elected(1)),  # not of the ISR
        (ONLINE, 2, (2, 3), {1, 3}, Elected(3)),
        (ONLINE, 2, (2,), {1, 3}, Elected(NO_LEADER)),
        (ONLINE, NO_LEADER, (2,), {2}, Elected(2)),
        (PREFERRED, 2, (1, 2, 3), {1, 2, 3}, Elected(1)),
        (PREFERRED, 2, (2, 3), {1, 2, 3}, Elected(2)),  # the preferred one is not in the ISR
        (PREFERRED, 2, (1, 2, 3), {3}, Elected(3)),
        (PREFERRED, 2, (2,), {1, 3}, Elected(NO_LEADER)),
        (UNCLEAN, 2, (2, 3), {1, 3}, Elected(3)),  # a clean one first
        (UNCLEAN, 2, (2,), {1, 3}, Elected(1, unclean=True)),
        (UNCLEAN, 2, (2,), set(), Elected(NO_LEADER)),
    ],
)
def test_the_elected_leader(
    election: Election, leader: int, isr: tuple[int, ...], alive: set[int], elected: Elected
) -> None:
    candidates = Candidates(leader=leader, replicas=(1, 2, 3), isr=isr)
    assert elect(election, candidates, alive.__contains__) == elected


@pytest.mark.parametrize(
    ("election", "isr", "elr", "last_known", "alive", "elected"),
    [
        (ONLINE, (), (2, 3), 1, {1, 2, 3}, Elected(2)),  # the ELR, in the order of assignment
        (ONLINE, (), (2, 3), 1, {1, 3}, Elected(3)),
        (PREFERRED, (), (1, 2), 3, {1, 2, 3}, Elected(1)),
        (UNCLEAN, (), (3,), 1, {1, 2, 3}, Elected(3)),  # a clean one first
        (ONLINE, (1,), (2, 3), NO_LEADER, {2, 3}, Elected(NO_LEADER)),  # not while there is an ISR
        (ONLINE, (), (2,), 1, {1, 3}, Elected(NO_LEADER)),  # not while there is an ELR
        (ONLINE, (), (), 1, {1, 3}, Elected(1, unclean=True, last_known=True)),
        (PREFERRED, (), (), 3, {1, 3}, Elected(3, unclean=True, last_known=True)),
        (UNCLEAN, (), (), 3, {1, 3}, Elected(3, unclean=True, last_known=True)),
        (ONLINE, (), (), 1, {2, 3}, Elected(NO_LEADER)),  # KAFKA-19522: it is fenced
        (UNCLEAN, (), (), 1, {2, 3}, Elected(2, unclean=True)),
        (ONLINE, (), (), 4, {4}, Elected(NO_LEADER)),  # it is no replica any more
    ],
)
def test_who_of_the_elr_is_elected(
    election: Election,
    isr: tuple[int, ...],
    elr: tuple[int, ...],
    last_known: int,
    alive: set[int],
    elected: Elected,
) -> None:
    """KAFKA-19522: a fenced last known leader is not elected."""
    candidates = Candidates(
        leader=NO_LEADER, replicas=(1, 2, 3), isr=isr, elr=elr, last_known=last_known
    )
    assert elect(election, candidates, alive.__contains__) == elected


# ------------------------------------------------------------------------------------ any partition


def directory(broker_id: int) -> Uuid:
    return uuid(100 + broker_id)


IMAGE = MetadataImage()
for broker in range(6):
    IMAGE = MetadataImage(
        brokers=IMAGE.brokers.insert(
            broker,
            Broker(
                id=broker,
                epoch=broker,
                incarnation_id=uuid(broker),
                endpoints=(),
                log_dirs=(directory(broker),),
            ),
        )
    )

some_brokers = st.lists(st.integers(0, 5), min_size=1, max_size=5, unique=True).map(tuple)


def parts_of(whole: tuple[int, ...]) -> st.SearchStrategy[tuple[int, ...]]:
    return st.lists(st.sampled_from(whole), min_size=1, unique=True).map(tuple)


@st.composite
def partitions(draw: st.DrawFn) -> Partition:
    replicas = draw(some_brokers)
    isr = draw(parts_of(replicas))
    return Partition(
        replicas=replicas,
        isr=isr,
        leader=draw(st.sampled_from((NO_LEADER, *isr))),
        leader_epoch=5,
        partition_epoch=9,
        removing=draw(st.one_of(st.just(()), parts_of(replicas))),
        adding=draw(st.one_of(st.just(()), parts_of(replicas))),
        leader_recovery_state=draw(st.sampled_from([RECOVERED, RECOVERING])),
        directories=tuple(map(directory, replicas)),
    )


class Case(NamedTuple):
    partition: Partition
    target: Target
    alive: frozenset[int]
    gone: int | None

    def apply(self) -> tuple[PartitionChangeRecord | None, Partition]:
        return apply(self.partition, self.target, self.alive)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Draw a partition and a change: a broker leaves, or the leader proposes an ISR. Any brokers
    are alive, and any kind of election is allowed."""
    partition = draw(partitions())
    target = Target.of(partition, None)
    target.election = draw(st.sampled_from(Election))
    alive = draw(st.frozensets(st.integers(0, 5)))
    if partition.leader in alive and draw(st.booleans()):
        others = draw(parts_of(partition.replicas))
        target.isr = (partition.leader, *(r for r in others if r != partition.leader))
        return Case(partition, target, alive, None)
    gone = draw(st.sampled_from(partition.replicas))
    target.isr = tuple(replica for replica in partition.isr if replica != gone)
    return Case(partition, target, alive - {gone}, gone)


def apply(
    partition: Partition, target: Target, alive: frozenset[int]
) -> tuple[PartitionChangeRecord | None, Partition]:
    record = partition_change(
        IMAGE, KEY, partition, target, alive.__contains__, Cause.BROKER_UNFENCED
    )
    return record, partition if record is None else merge(partition, record)


@BUDGET
@given(cases())
def test_what_holds_after_every_change(case: Case) -> None:
    before = case.partition
    in_sync = {*before.isr, *case.target.isr}
    record, after = case.apply()
    assert after.isr, "an ISR is never empty while ELR is off"
    assert len(set(after.isr)) == len(after.isr) and set(after.isr) <= set(after.replicas)
    assert after.leader == NO_LEADER or (after.leader in after.isr and after.leader in case.alive)
    assert after.partition_epoch == before.partition_epoch + (record is not None)
    assert after.leader_epoch - before.leader_epoch in (0, 1)
    if after.leader != before.leader or set(before.replicas) - set(after.replicas):
        assert after.leader_epoch == before.leader_epoch + 1
    assert after.directories == tuple(map(directory, after.replicas))
    if not in_sync.intersection(after.isr):
        assert after.isr == (after.leader,) and after.leader_recovery_state == RECOVERING
        assert case.target.election is UNCLEAN


@BUDGET
@given(cases())
def test_a_change_that_was_made_is_not_made_again(case: Case) -> None:
    _, after = case.apply()
    again = Target.of(after, None)
    again.isr = tuple(replica for replica in after.isr if replica != case.gone)
    again.election = case.target.election
    record = apply(after, again, case.alive)[0]
    # An unclean election may make the ISR complete a reassignment, which the next change notices.
    assert record is None or record.cause == Cause.REASSIGNMENT_COMPLETE


@BUDGET
@given(partitions(), st.data())
def test_kafka_15021_an_isr_change_alone_leaves_the_leader_epoch(
    partition: Partition, data: st.DataObject
) -> None:
    alive = frozenset(partition.replicas)
    leader = partition.isr[0]
    settled = Partition(
        replicas=partition.replicas,
        isr=partition.isr,
        leader=leader,
        directories=partition.directories,
    )
    target = Target.of(settled, None)
    target.isr = (leader, *(r for r in data.draw(parts_of(partition.replicas)) if r != leader))
    record, after = apply(settled, target, alive)
    assert after.leader_epoch == settled.leader_epoch
    assert record is None or record.leader == NO_LEADER_CHANGE


# ------------------------------------------------------------------------------------- reassignment


@pytest.mark.parametrize(
    ("isr", "completes"), [((1, 2, 3), False), ((1, 2, 3, 4), True), ((3, 4), True), ((1,), False)]
)
def test_a_change_completes_a_reassignment_if_it_can(isr: tuple[int, ...], completes: bool) -> None:
    partition = Partition(
        replicas=(3, 4, 1, 2), isr=(1, 2, 3), leader=1, adding=(4,), removing=(1, 2)
    )
    target = Target.of(partition, None)
    target.isr = isr
    record, after = apply(partition, target, frozenset({1, 2, 3, 4}))
    assert (not after.reassigning) == completes
    if completes:
        assert record is not None and record.cause == Cause.REASSIGNMENT_COMPLETE
        assert (after.replicas, after.leader, after.leader_epoch) == ((3, 4), 3, 1)
        assert set(after.isr) == {3, 4}


def test_a_reassignment_that_only_adds_keeps_leader_and_epoch() -> None:
    partition = Partition(replicas=(1, 2), isr=(1,), leader=1, adding=(2,))
    target = Target.of(partition, None)
    target.isr = (1, 2)
    _, after = apply(partition, target, frozenset({1, 2}))
    assert (after.leader, after.leader_epoch, after.adding) == (1, 0, ())
