"""AlterPartition: each refusal in its order, and the response to a success."""

from __future__ import annotations

from typing import Any

import pytest

from quorate.quorum.controller.state.messages import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    IsrChange,
)
from quorate.quorum.controller.topics.directories import default_directories
from quorate.quorum.metadata.causes import Cause
from quorate.quorum.metadata.records import RECOVERED, RECOVERING, PartitionChangeRecord
from quorate.quorum.protocol.errors import ErrorCode
from tests.unit.controller.harness import Driver, uuid


def with_topic() -> Driver:
    """Create a partition with leader 1, leader epoch 2, partition epoch 3, replicas 1, 2, 3 and ISR
    1, 2. Broker 4 is fenced."""
    driver = Driver()
    driver.start(1, 2, 3)
    driver.register(4)
    driver.create("t", (1, 2, 3, 4))
    for leader in (2, 1):
        driver.append(
            [
                PartitionChangeRecord(
                    topic_id=driver.image.topic_id("t"), partition_id=0, leader=leader
                )
            ]
        )
    driver.propose_isr("t", (1, 2))
    partition = driver.partition("t")
    assert (partition.leader_epoch, partition.partition_epoch) == (2, 3)
    return driver


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"topic_id": uuid(77)}, ErrorCode.UNKNOWN_TOPIC_ID),
        ({"partition_id": 1}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        # KAFKA-14154: an epoch that this controller has not seen yet means that it is the stale
        # one.
        ({"leader_epoch": 3}, ErrorCode.NOT_CONTROLLER),
        ({"partition_epoch": 4}, ErrorCode.NOT_CONTROLLER),
        ({"leader_epoch": 1, "partition_epoch": 4}, ErrorCode.NOT_CONTROLLER),
        ({"leader_epoch": 1}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"leader_epoch": 1, "sender": 2}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"sender": 2}, ErrorCode.INVALID_REQUEST),
        ({"sender": 2, "partition_epoch": 2}, ErrorCode.INVALID_REQUEST),
        ({"partition_epoch": 2}, ErrorCode.INVALID_UPDATE_VERSION),
        ({"isr": ()}, ErrorCode.INVALID_REQUEST),
        ({"isr": ((1, -1), (1, -1))}, ErrorCode.INVALID_REQUEST),
        ({"isr": ((1, -1), (9, -1))}, ErrorCode.INVALID_REQUEST),
        ({"isr": ((2, -1), (3, -1))}, ErrorCode.INVALID_REQUEST),
        ({"leader_recovery_state": RECOVERING}, ErrorCode.INVALID_REQUEST),
        ({"leader_recovery_state": RECOVERING, "isr": ((1, -1),)}, ErrorCode.INVALID_REQUEST),
        ({"isr": ((1, -1), (4, -1))}, ErrorCode.INELIGIBLE_REPLICA),
        ({"isr": ((1, -1), (3, 0))}, ErrorCode.INELIGIBLE_REPLICA),
    ],
)
def test_what_is_refused(changes: dict[str, Any], error: ErrorCode) -> None:
    driver = with_topic()
    length = len(driver.log)
    assert driver.propose_isr("t", (1, 2, 3), **changes).error == error
    assert len(driver.log) == length


def test_a_success_answers_the_full_new_state_and_writes_the_leaders_reason() -> None:
    driver = with_topic()
    epoch = driver.broker(3).epoch
    result = driver.propose_isr("t", (), isr=((1, -1), (3, epoch)), cause=Cause.ISR_SHRINK_LAG)
    assert result.error == ErrorCode.NONE
    assert (result.leader, result.leader_epoch, result.partition_epoch) == (1, 2, 4)
    assert (result.isr, result.leader_recovery_state) == ((1, 3), RECOVERED)
    partition = driver.partition("t")
    assert (partition.isr, partition.partition_epoch) == (result.isr, result.partition_epoch)
    record = driver.log[-1]
    assert isinstance(record, PartitionChangeRecord)
    assert record.cause == Cause.ISR_SHRINK_LAG


def test_kafka_15021_a_shrinking_isr_leaves_the_leader_epoch_alone() -> None:
    driver = with_topic()
    assert driver.propose_isr("t", (1,)).leader_epoch == 2
    record = driver.log[-1]
    assert isinstance(record, PartitionChangeRecord)
    assert record.isr == (1,) and record.leader == -2


def test_the_same_isr_again_writes_nothing_and_succeeds() -> None:
    driver = with_topic()
    length = len(driver.log)
    assert driver.propose_isr("t", (1, 2)).error == ErrorCode.NONE
    assert len(driver.log) == length


def test_a_leader_that_recovered_says_so() -> None:
    driver = with_topic()
    driver.append(
        [
            PartitionChangeRecord(
                topic_id=driver.image.topic_id("t"),
                partition_id=0,
                isr=(1,),
                leader_recovery_state=RECOVERING,
            )
        ]
    )
    assert driver.propose_isr("t", (1,), leader_recovery_state=RECOVERING).error == 0
    assert driver.partition("t").leader_recovery_state == RECOVERING
    driver.propose_isr("t", (1,), leader_recovery_state=RECOVERED)
    assert driver.partition("t").leader_recovery_state == RECOVERED


def test_completing_a_reassignment_away_from_the_sender_is_written_and_refused() -> None:
    driver = with_topic()
    driver.append(
        [
            PartitionChangeRecord(
                topic_id=driver.image.topic_id("t"),
                partition_id=0,
                replicas=(2, 3, 1, 4),
                directories=default_directories(driver.image, (2, 3, 1, 4)),
                removing_replicas=(1, 4),
                adding_replicas=(3,),
            )
        ]
    )
    result = driver.propose_isr("t", (1, 2, 3))
    assert result.error == ErrorCode.NEW_LEADER_ELECTED
    partition = driver.partition("t")
    assert (partition.replicas, partition.isr) == ((2, 3), (2, 3))
    assert (partition.leader, partition.leader_epoch) == (2, 3)
    assert not partition.reassigning
    record = driver.log[-1]
    assert isinstance(record, PartitionChangeRecord)
    assert record.cause == Cause.REASSIGNMENT_COMPLETE


def alter(driver: Driver, broker_epoch: int, *changes: IsrChange) -> AlterPartitionResponse:
    response = driver.handle(
        AlterPartitionRequest(broker_id=1, broker_epoch=broker_epoch, changes=changes)
    )
    assert isinstance(response, AlterPartitionResponse)
    return response


def test_a_stale_broker_epoch_refuses_the_whole_request() -> None:
    driver = with_topic()
    response = alter(driver, driver.broker(1).epoch - 1)
    assert response.error == ErrorCode.STALE_BROKER_EPOCH


def test_two_changes_of_one_partition_in_one_request_do_not_both_hold() -> None:
    driver = with_topic()
    change = IsrChange(
        topic_id=driver.image.topic_id("t"),
        partition_id=0,
        leader_epoch=2,
        partition_epoch=3,
        isr=((1, -1),),
        leader_recovery_state=RECOVERED,
        cause="",
    )
    response = alter(driver, driver.broker(1).epoch, change, change)
    errors = [result.error for result in response.results]
    assert errors == [ErrorCode.NONE, ErrorCode.INVALID_UPDATE_VERSION]
    assert driver.partition("t").partition_epoch == 4
