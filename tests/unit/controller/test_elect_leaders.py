"""ElectLeaders and UnregisterBroker: each response, and the records."""

from __future__ import annotations

import pytest

from quorate.quorum.metadata.causes import Cause
from quorate.quorum.metadata.records import (
    RECOVERING,
    PartitionChangeRecord,
    UnregisterBrokerRecord,
)
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    TopicPartitions,
)
from quorate.quorum.protocol.schemas.unregister_broker import UnregisterBrokerRequest
from tests.unit.controller.harness import SESSION_MS, Driver

PREFERRED, UNCLEAN = 0, 1


def elect(driver: Driver, kind: int, *partitions: int, topic: str = "t") -> list[int]:
    response = driver.handle(
        ElectLeadersRequest(
            election_type=kind,
            topic_partitions=(TopicPartitions(topic=topic, partitions=partitions or (0,)),),
        )
    )
    assert isinstance(response, ElectLeadersResponse)
    (result,) = response.replica_election_results
    return [each.error_code for each in result.partition_result]


def led_by_another(*, preferred_in_isr: bool) -> Driver:
    """Create a partition that broker 2 leads and broker 1 is preferred to lead."""
    driver = Driver()
    driver.start(1, 2, 3)
    driver.create("t", (1, 2, 3))
    driver.append(
        [PartitionChangeRecord(topic_id=driver.image.topic_id("t"), partition_id=0, leader=2)]
    )
    if not preferred_in_isr:
        driver.propose_isr("t", (2, 3))
    return driver


def leaderless() -> Driver:
    """Create a partition whose ISR is broker 1, which is dead. Brokers 2 and 3 are alive."""
    driver = Driver()
    driver.start(1, 2, 3)
    driver.create("t", (1, 2, 3))
    driver.propose_isr("t", (1,))
    for now_ms in (SESSION_MS - 1000, 2 * SESSION_MS):
        driver.heartbeat(2)
        driver.heartbeat(3)
        driver.run_until(min(now_ms, SESSION_MS + 500))
    assert driver.leader_and_isr("t") == (-1, (1,))
    return driver


def test_a_preferred_leader() -> None:
    driver = led_by_another(preferred_in_isr=True)
    assert elect(driver, PREFERRED) == [ErrorCode.NONE]
    record = driver.log[-1]
    assert isinstance(record, PartitionChangeRecord)
    assert (record.leader, record.isr, record.cause) == (1, None, Cause.PREFERRED_ELECTION)
    assert elect(driver, PREFERRED) == [ErrorCode.ELECTION_NOT_NEEDED]


def test_an_unclean_leader_whatever_the_topic_says() -> None:
    driver = leaderless()
    assert elect(driver, UNCLEAN) == [ErrorCode.NONE]
    partition = driver.partition("t")
    assert (partition.leader, partition.isr) == (2, (2,))
    assert partition.leader_recovery_state == RECOVERING
    assert driver.log[-1].cause == Cause.UNCLEAN_ELECTION  # type: ignore[attr-defined]


def test_what_is_refused() -> None:
    driver = led_by_another(preferred_in_isr=False)
    length = len(driver.log)
    assert elect(driver, PREFERRED) == [ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE]
    assert elect(driver, UNCLEAN) == [ErrorCode.ELECTION_NOT_NEEDED]
    assert elect(driver, PREFERRED, 5, -1) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 2
    assert elect(driver, PREFERRED, topic="absent") == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert len(driver.log) == length


def test_nobody_may_lead() -> None:
    driver = leaderless()
    driver.run_until(5 * SESSION_MS)
    assert elect(driver, UNCLEAN) == [ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE]
    assert elect(driver, PREFERRED) == [ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE]


def test_a_partition_named_twice_is_elected_once() -> None:
    driver = led_by_another(preferred_in_isr=True)
    length = len(driver.log)
    assert elect(driver, PREFERRED, 0, 0) == [ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED]
    assert len(driver.log) == length + 1


@pytest.mark.parametrize("kind", [-1, 2, 127])
def test_an_unknown_kind_fails_the_request_and_every_partition(kind: int) -> None:
    driver = led_by_another(preferred_in_isr=True)
    response = driver.handle(
        ElectLeadersRequest(
            election_type=kind,
            topic_partitions=(TopicPartitions(topic="t", partitions=(0,)),),
        )
    )
    assert response.error_code == ErrorCode.INVALID_REQUEST
    result = response.replica_election_results[0].partition_result[0]
    assert result.error_code == ErrorCode.INVALID_REQUEST
    assert result.error_message == f"Unknown election type {kind}"


def test_everywhere_answers_only_where_an_election_was_due() -> None:
    driver = led_by_another(preferred_in_isr=True)
    driver.create("u", (2, 1))
    response = driver.handle(ElectLeadersRequest(election_type=PREFERRED, topic_partitions=None))
    assert [
        (topic.topic, [each.error_code for each in topic.partition_result])
        for topic in response.replica_election_results
    ] == [("t", [ErrorCode.NONE]), ("u", [])]


def test_a_broker_is_unregistered() -> None:
    driver = Driver()
    driver.start(1, 2)
    driver.create("t", (1, 2))
    response = driver.handle(UnregisterBrokerRequest(broker_id=1))
    assert response.error_code == ErrorCode.NONE
    assert 1 not in driver.image.brokers
    assert driver.leader_and_isr("t") == (2, (2,))
    change, unregistered = driver.log[-2:]
    assert isinstance(change, PartitionChangeRecord) and change.cause == Cause.UNREGISTERED
    assert isinstance(unregistered, UnregisterBrokerRecord)
    driver.run_until(5 * SESSION_MS)  # its session went with it
    again = driver.handle(UnregisterBrokerRequest(broker_id=1))
    assert (again.error_code, again.error_message) == (
        ErrorCode.BROKER_ID_NOT_REGISTERED,
        "Broker ID 1 is not currently registered",
    )
