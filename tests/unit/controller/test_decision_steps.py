"""The rules whose work grows with one broker or one request do it in steps of bounded length."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from quorate.quorum.controller.state.decision_steps import STEP_RECORDS
from quorate.quorum.controller.state.messages import (
    AssignReplicasToDirsRequest,
    BrokerHeartbeatRequest,
)
from quorate.quorum.controller.state.result import Result
from quorate.quorum.metadata.records import NO_LEADER, PartitionChangeRecord
from quorate.quorum.protocol.schemas import elect_leaders, reassignments
from quorate.quorum.protocol.schemas.topics import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
)
from quorate.quorum.protocol.schemas.unregister_broker import UnregisterBrokerRequest
from tests.unit.controller.harness import SESSION_MS, Driver, creatable, registration, uuid

PARTITIONS = 3 * STEP_RECORDS + 10


@pytest.fixture
def driver() -> Driver:
    """Three brokers. Broker 1 is in the ISR of every partition and leads it."""
    made = Driver(elr=True)
    made.start(1, 2, 3)
    made.create("big", *[(1, 2)] * PARTITIONS)
    made.pauses.clear()
    return made


def expire(driver: Driver) -> None:
    """Let the session of broker 1 end."""
    driver.now_ms += SESSION_MS - 1
    driver.heartbeat(2)
    driver.heartbeat(3)
    driver.run_until(driver.now_ms + 1)


def lose_connection(driver: Driver) -> None:
    driver.connect(1)
    driver.take(driver.controller.connection_lost(1, driver.broker(1).epoch))


def fence(driver: Driver) -> None:
    expire(driver)
    assert driver.broker(1).fenced


def replace(driver: Driver) -> None:
    lose_connection(driver)
    driver.register(1, 2)


def unregister(driver: Driver) -> None:
    driver.handle(UnregisterBrokerRequest(broker_id=1))
    assert 1 not in driver.image.brokers


def shut_down(driver: Driver) -> None:
    driver.heartbeat(1, want_shut_down=True)
    assert driver.broker(1).in_controlled_shutdown


def report_directories(driver: Driver) -> None:
    topic_id = driver.image.topic_id("big")
    directory = uuid(777)  # not registered: it has failed
    assigned = tuple((topic_id, each, directory) for each in range(PARTITIONS))
    request = AssignReplicasToDirsRequest(
        broker_id=1, broker_epoch=driver.broker(1).epoch, assignments=assigned
    )
    assert set(driver.handle(request).errors) == {0}


def fail_directory(driver: Driver) -> None:
    broker = driver.broker(1)
    driver.handle(
        BrokerHeartbeatRequest(
            broker_id=1,
            broker_epoch=broker.epoch,
            metadata_offset=len(driver.log),
            want_fence=False,
            want_shut_down=False,
            offline_log_dirs=broker.log_dirs,
        )
    )


@pytest.mark.parametrize(
    "event", [fence, replace, unregister, shut_down, report_directories, fail_directory]
)
def test_a_change_of_one_broker_is_made_in_steps(
    driver: Driver, event: Callable[[Driver], None]
) -> None:
    begun = len(driver.log)
    event(driver)
    records = [count for count in driver.pauses if count]
    assert len(records) >= PARTITIONS // STEP_RECORDS
    assert max(records) <= STEP_RECORDS + 1
    changed = [each for each in driver.log[begun:] if isinstance(each, PartitionChangeRecord)]
    assert [each.partition_id for each in changed] == [*range(PARTITIONS)], "in the order of ids"
    assert driver.controller.index.partitions_in_isr(1) == []


def test_an_unfencing_elects_leaders_in_steps(driver: Driver) -> None:
    driver.create("alone", *[(1,)] * PARTITIONS)
    fence(driver)
    assert driver.partition("alone", PARTITIONS - 1).leader == NO_LEADER
    driver.pauses.clear()
    assert not driver.heartbeat(1).fenced
    assert max(driver.pauses) <= STEP_RECORDS + 1
    assert {driver.partition("alone", each).leader for each in range(PARTITIONS)} == {1}


def test_the_new_incarnation_registers_after_the_last_removal(driver: Driver) -> None:
    """At no moment is the new incarnation registered while its broker is in an ISR. A controller
    that takes over between two steps finds the old registration, and repeats the rest."""
    lose_connection(driver)
    old = driver.broker(1).epoch
    request = registration(1, 2)
    outcome = driver.controller.handle(request, now_ms=driver.now_ms, next_offset=len(driver.log))
    left = []
    while not isinstance(outcome, Result):
        step = driver.controller.resume(outcome, now_ms=driver.now_ms, next_offset=len(driver.log))
        if isinstance(step, Result):
            outcome = step
            break
        driver.append(step or ())
        assert driver.broker(1).epoch == old
        left.append(len(driver.controller.index.partitions_in_isr(1)))
    assert left[-1] > 0, "the last removals are in the batch of the registration"
    assert sorted(left, reverse=True) == left
    driver.take(outcome)
    assert driver.broker(1).epoch == len(driver.log) - 1 > old
    assert not driver.controller.index.partitions_in_isr(1)


def test_topics_and_partitions_are_placed_in_steps() -> None:
    driver = Driver()
    driver.start(1, 2, 3)
    topic = creatable("t", partitions=PARTITIONS, replication_factor=2)
    driver.handle(CreateTopicsRequest(topics=(topic,)))
    assert driver.pauses == [0] * 2 * (PARTITIONS // STEP_RECORDS)
    grown = CreatePartitionsTopic(name="t", count=2 * PARTITIONS, assignments=None)
    driver.handle(CreatePartitionsRequest(topics=(grown,), timeout_ms=0, validate_only=False))
    assert driver.pauses == [0] * 4 * (PARTITIONS // STEP_RECORDS)
    assert len(driver.image.topics[driver.image.topic_id("t")].partitions) == 2 * PARTITIONS


def test_elections_and_reassignments_are_prepared_in_steps(driver: Driver) -> None:
    named = elect_leaders.TopicPartitions(topic="big", partitions=tuple(range(PARTITIONS)))
    driver.handle(elect_leaders.ElectLeadersRequest(topic_partitions=(named,)))
    assert driver.pauses == [0] * (PARTITIONS // STEP_RECORDS)
    moves = tuple(
        reassignments.ReassignablePartition(partition_index=each, replicas=(2, 3))
        for each in range(PARTITIONS)
    )
    topic = reassignments.ReassignableTopic(name="big", partitions=moves)
    driver.handle(reassignments.AlterPartitionReassignmentsRequest(topics=(topic,)))
    assert driver.pauses == [0] * 2 * (PARTITIONS // STEP_RECORDS)
    assert len(driver.controller.index.reassigning) == PARTITIONS
