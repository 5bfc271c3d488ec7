"""The check of what controllers write finds what it is for."""

from __future__ import annotations

import pytest

from quorate.quorum.ids import Uuid
from quorate.quorum.metadata.causes import Cause
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.metadata.records import (
    NO_LEADER,
    NO_LEADER_CHANGE,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
)
from tests.sim.rulings import Rulings

TOPIC = Uuid(bytes(range(16)))
CREATED = PartitionRecord(topic_id=TOPIC, partition_id=0, isr=(4, 5, 6), leader=4)


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


def told(*records: MetadataRecord) -> str:
    return Rulings(MetadataImage()).take(records)


SHRUNK = change(Cause.SESSION_EXPIRED, isr=(5, 6), leader=5)
LEADERLESS = change(Cause.SESSION_EXPIRED, leader=NO_LEADER)


@pytest.mark.parametrize(
    "records",
    [
        [SHRUNK, change(Cause.SESSION_EXPIRED, isr=(6,), leader=6)],
        [LEADERLESS, change(Cause.BROKER_UNFENCED, leader=6)],
        [SHRUNK, change(Cause.REASSIGNMENT_COMPLETE, isr=(6, 7), leader=7)],
        [SHRUNK, change(Cause.ISR_EXPAND, isr=(5, 6, 4)), change(Cause.LEADER_IMBALANCE, leader=4)],
    ],
)
def test_right(records: list[MetadataRecord]) -> None:
    assert told(CREATED, *records) == ""


@pytest.mark.parametrize(
    "records",
    [
        [SHRUNK, change(Cause.BROKER_UNFENCED, leader=4)],
        [change(Cause.SESSION_EXPIRED, isr=(7,), leader=7)],
        [LEADERLESS, change(Cause.BROKER_UNFENCED, leader=7)],
        # The image after the batch shows nothing: the leader is in the ISR.
        [SHRUNK, change(Cause.BROKER_UNFENCED, leader=4), change(Cause.ISR_EXPAND, isr=(4, 5, 6))],
    ],
)
def test_a_leader_that_was_not_in_the_isr(records: list[MetadataRecord]) -> None:
    assert "and the ISR was" in told(CREATED, *records)


def test_a_partition_that_begins_with_a_leader_outside_of_its_isr() -> None:
    assert "is not in its ISR" in told(PartitionRecord(topic_id=TOPIC, isr=(5,), leader=4))


def test_each_incarnation_of_a_broker_has_a_greater_epoch() -> None:
    assert told(registered(7, 1), registered(7, 1), registered(9, 2)) == ""
    for epoch, incarnation in ((6, 1), (8, 1), (7, 2), (6, 2)):
        assert "had epoch 7" in told(registered(7, 1), registered(epoch, incarnation))
