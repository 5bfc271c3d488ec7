"""The check of the records that controllers write finds the faults for which it exists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from quorate.quorum.controller.state.messages import AlterPartitionRequest, IsrChange
from quorate.quorum.ids import Uuid
from quorate.quorum.metadata.causes import Cause
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.metadata.records import (
    NO_LEADER,
    NO_LEADER_CHANGE,
    RECOVERING,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnregisterBrokerRecord,
)
from tests.sim.checks.proposals import Proposals
from tests.sim.checks.rulings import Rulings

TOPIC = Uuid(bytes(range(16)))
CREATED = PartitionRecord(
    topic_id=TOPIC, partition_id=0, isr=(4, 5, 6), leader=4, leader_epoch=0, partition_epoch=0
)


def change(
    cause: Cause, isr: tuple[int, ...] | None = None, leader: int = NO_LEADER_CHANGE
) -> MetadataRecord:
    return PartitionChangeRecord(
        topic_id=TOPIC, partition_id=0, isr=isr, leader=leader, cause=cause
    )


def registered(broker_epoch: int, incarnation: int) -> MetadataRecord:
    return RegisterBrokerRecord(
        broker_id=4,
        incarnation_id=Uuid(bytes([incarnation] * 16)),
        broker_epoch=broker_epoch,
        end_points=(),
    )


def told(*records: MetadataRecord, asked: Sequence[AlterPartitionRequest] = ()) -> str:
    proposals = Proposals()
    for each in asked:
        proposals.note(each)
    return Rulings(MetadataImage(), proposals.asked).take(records)


def proposal(
    leader: int, isr: tuple[int, ...], leader_epoch: int, partition_epoch: int
) -> AlterPartitionRequest:
    """Return the request of a leader, with the epochs that it knows."""
    change = IsrChange(
        topic_id=TOPIC,
        partition_id=0,
        leader_epoch=leader_epoch,
        partition_epoch=partition_epoch,
        leader_recovery_state=0,
        isr=tuple((each, -1) for each in isr),
        cause=Cause.ISR_EXPAND,
    )
    return AlterPartitionRequest(broker_id=leader, broker_epoch=1, changes=(change,))


def elr(
    isr: tuple[int, ...],
    leader: int,
    elr: tuple[int, ...],
    known: tuple[int, ...] = (),
    **more: Any,
) -> MetadataRecord:
    return PartitionChangeRecord(
        topic_id=TOPIC,
        partition_id=0,
        isr=isr,
        leader=leader,
        eligible_leader_replicas=elr,
        last_known_elr=known,
        **more,
    )


SHRUNK = change(Cause.SESSION_EXPIRED, isr=(5, 6), leader=5)
LEADERLESS = change(Cause.SESSION_EXPIRED, leader=NO_LEADER)
ALONE = elr((6,), 6, (5,))
EMPTY = elr((), NO_LEADER, (5, 6), (6,))
UNCLEAN = elr((), NO_LEADER, (), (6,))


@pytest.mark.parametrize(
    "records",
    [
        [SHRUNK, change(Cause.SESSION_EXPIRED, isr=(6,), leader=6)],
        [LEADERLESS, change(Cause.BROKER_UNFENCED, leader=6)],
        [change(Cause.ISR_SHRINK_LAG, isr=(4, 6))],
        [ALONE, elr((5,), 5, (6,))],
        [ALONE, EMPTY, elr((5,), 5, (6,))],
        [ALONE, EMPTY, UNCLEAN, elr((6,), 6, (), leader_recovery_state=RECOVERING)],
    ],
)
def test_right(records: list[MetadataRecord]) -> None:
    assert told(CREATED, *records) == ""


EXPANDED = change(Cause.ISR_EXPAND, isr=(5, 6, 4))
COMPLETED = change(Cause.REASSIGNMENT_COMPLETE, isr=(6, 7), leader=7)
ASKED_FOR_4 = proposal(5, (5, 6, 4), leader_epoch=1, partition_epoch=1)
ASKED_FOR_7 = proposal(5, (5, 6, 7), leader_epoch=1, partition_epoch=1)


def test_a_replica_joins_when_the_leader_asked_for_it() -> None:
    again = change(Cause.LEADER_IMBALANCE, leader=4)
    assert told(CREATED, SHRUNK, EXPANDED, again, asked=[ASKED_FOR_4]) == ""
    assert told(CREATED, SHRUNK, COMPLETED, asked=[ASKED_FOR_7]) == ""


@pytest.mark.parametrize("record", [EXPANDED, COMPLETED])
@pytest.mark.parametrize(
    "asked",
    [
        [],
        [proposal(6, (5, 6, 4, 7), 1, 1)],
        [proposal(5, (5, 6, 4, 7), 0, 1)],
        [proposal(5, (5, 6, 4, 7), 1, 0)],
        [proposal(5, (5, 6, 9), 1, 1)],
    ],
    ids=["nothing", "another leader", "leader epoch", "partition epoch", "another replica"],
)
def test_the_cause_of_a_record_proves_nothing(
    record: MetadataRecord, asked: list[AlterPartitionRequest]
) -> None:
    found = told(CREATED, SHRUNK, record, asked=asked)
    assert "no leader asked" in found or "and the ISR was" in found


def test_any_replica_may_lead_where_unclean_elections_are_allowed() -> None:
    unclean = change(Cause.UNCLEAN_ELECTION, isr=(4,), leader=4)
    records = [CREATED, SHRUNK, LEADERLESS, unclean]
    assert Rulings(MetadataImage(), Proposals().asked, lambda topic_id: True).take(records) == ""
    assert "and the ISR was" in told(*records)


def eligible(*replicas: int, isr: tuple[int, ...], leader: int) -> MetadataRecord:
    return PartitionChangeRecord(
        topic_id=TOPIC, partition_id=0, isr=isr, leader=leader, eligible_leader_replicas=replicas
    )


def test_an_eligible_leader_was_in_the_isr() -> None:
    alone = eligible(4, 6, isr=(5,), leader=5)
    assert told(CREATED, alone, LEADERLESS, eligible(6, isr=(4,), leader=4)) == ""
    assert "and the ISR was" in told(CREATED, alone, eligible(isr=(7,), leader=7))
    assert "without having been in the ISR" in told(CREATED, eligible(7, isr=(5,), leader=5))


@pytest.mark.parametrize(
    "records",
    [
        [SHRUNK, change(Cause.BROKER_UNFENCED, leader=4)],
        [change(Cause.SESSION_EXPIRED, isr=(7,), leader=7)],
        [LEADERLESS, change(Cause.BROKER_UNFENCED, leader=7)],
        # The image after the batch shows nothing: the leader is in the ISR.
        [SHRUNK, change(Cause.BROKER_UNFENCED, leader=4), EXPANDED],
    ],
)
def test_a_leader_that_was_not_in_the_isr(records: list[MetadataRecord]) -> None:
    assert "and the ISR was" in told(CREATED, *records)


@pytest.mark.parametrize(
    "records",
    [
        [ALONE, elr((4,), 4, (5, 6))],
        [ALONE, EMPTY, elr((4,), 4, (5, 6))],
        [ALONE, EMPTY, elr((4, 5), 4, ())],
        [ALONE, EMPTY, UNCLEAN, elr((5,), 5, (), leader_recovery_state=RECOVERING)],
        [
            ALONE,
            elr((), NO_LEADER, (5, 6), (4,)),
            elr((4,), 4, (), leader_recovery_state=RECOVERING),
        ],
        [ALONE, EMPTY, UNCLEAN, elr((6,), 6, ())],
    ],
)
def test_a_leader_that_was_not_eligible(records: list[MetadataRecord]) -> None:
    assert "and the ISR was" in told(CREATED, *records)


def test_a_replica_that_was_not_in_sync_becomes_eligible() -> None:
    assert "without having been in the ISR" in told(
        CREATED, ALONE, elr((), NO_LEADER, (4, 5, 6), (6,))
    )


def test_a_partition_without_any_replica_that_may_lead() -> None:
    assert "no replica is known" in told(CREATED, elr((), NO_LEADER, ()))


def test_cleared_replicas_are_not_eligible() -> None:
    topic = TopicRecord(name="t", topic_id=TOPIC)
    for name in ("", "t"):
        cleared = ClearElrRecord(topic_name=name)
        assert "leads after" in told(topic, CREATED, ALONE, EMPTY, cleared, elr((5,), 5, ()))
    other = ClearElrRecord(topic_name="u")
    assert told(topic, CREATED, ALONE, EMPTY, other, elr((5,), 5, (6,))) == ""


def test_a_partition_that_begins_with_a_leader_outside_of_its_isr() -> None:
    assert "is not in its ISR" in told(PartitionRecord(topic_id=TOPIC, isr=(5,), leader=4))


def test_each_incarnation_of_a_broker_has_a_greater_epoch() -> None:
    assert told(registered(7, 1), registered(7, 1), registered(9, 2)) == ""
    for epoch, incarnation in ((6, 1), (8, 1), (7, 2), (6, 2)):
        assert "had epoch 7" in told(registered(7, 1), registered(epoch, incarnation))


def test_an_incarnation_that_was_unregistered_may_register_again() -> None:
    """An incarnation that got no answer to its first registration asks again (seed 30297)."""
    gone = UnregisterBrokerRecord(broker_id=4, broker_epoch=7)
    assert told(registered(7, 1), gone, registered(9, 1)) == ""
    assert "had epoch 7" in told(registered(7, 1), gone, registered(7, 1))


def restarted(*before: MetadataRecord, killed: bool = False) -> str:
    """Return the message of the check if broker 4 registers its second incarnation."""
    rulings = Rulings(MetadataImage(), Proposals().asked, was_killed=lambda incarnation_id: killed)
    assert rulings.take([registered(1, 1), CREATED]) == ""
    assert rulings.take(before) == ""
    return rulings.take([registered(2, 2)])


def test_a_broker_that_restarts_stays_in_sync() -> None:
    assert "is in the ISR (4, 5, 6)" in restarted()
    assert restarted(SHRUNK) == ""
    assert restarted(SHRUNK, killed=True) == ""
    deleted = RemoveTopicRecord(topic_id=TOPIC)
    assert restarted(deleted) == ""


def test_a_broker_that_was_killed_stays_eligible() -> None:
    eligible = elr((5,), 5, (4,))
    assert restarted(eligible) == ""
    assert "is in the ELR (4,)" in restarted(eligible, killed=True)


def test_a_fenced_broker_is_elected_or_joins() -> None:
    fenced = BrokerRegistrationChangeRecord(broker_id=6, broker_epoch=1, fenced=1)
    unfenced = BrokerRegistrationChangeRecord(broker_id=6, broker_epoch=1, fenced=-1)
    elected = change(Cause.BROKER_UNFENCED, leader=6)
    assert "[6] are fenced" in told(CREATED, fenced, elected)
    assert told(CREATED, fenced, unfenced, elected) == ""


def test_a_replica_joins_as_another_incarnation() -> None:
    """The leader asked for the incarnation with epoch 1, and the one with epoch 2 registered."""
    alone = change(Cause.SESSION_EXPIRED, isr=(5,), leader=5)
    request = proposal(5, (5, 4), 1, 1)
    asked = replace(request, changes=(replace(request.changes[0], isr=((5, -1), (4, 1))),))
    joins = change(Cause.ISR_EXPAND, isr=(5, 4))
    unfenced = BrokerRegistrationChangeRecord(broker_id=4, broker_epoch=1, fenced=-1)
    known = [registered(1, 1), CREATED, alone]
    assert told(*known, unfenced, joins, asked=[asked]) == ""
    assert "no leader asked" in told(*known, registered(2, 2), unfenced, joins, asked=[asked])


def test_a_replica_is_eligible_beside_an_isr_that_commits() -> None:
    rulings = Rulings(MetadataImage(), Proposals().asked, min_isr={"data": 2})
    named = TopicRecord(name="data", topic_id=TOPIC)
    created = replace(CREATED, replicas=(4, 5, 6))
    assert rulings.take([named, created]) == ""
    assert "eligible beside an ISR" in rulings.take([elr((5, 6), 5, (4,))])
    rulings = Rulings(MetadataImage(), Proposals().asked, min_isr={"data": 2})
    assert rulings.take([named, created, SHRUNK, elr((6,), 6, (5,))]) == ""
