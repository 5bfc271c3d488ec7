"""The controller's rules of log directories (KIP-858): assignments, failures, eligibility."""

from __future__ import annotations

import pytest

from quorate.quorum.controller.state.messages import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
)
from quorate.quorum.directory_ids import LOST, MIGRATING, UNASSIGNED, is_online, is_reserved
from quorate.quorum.ids import Uuid
from quorate.quorum.metadata.causes import Cause
from quorate.quorum.metadata.records import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
)
from quorate.quorum.protocol.errors import ErrorCode
from tests.unit.controller.harness import Driver, uuid

A, B, ELSEWHERE = uuid(501), uuid(502), uuid(599)
U = -1
"""The number with which `assign` names partition 0 of topic u."""


def driver_of(*, elr: bool = False) -> Driver:
    """Broker 1 has the directories A and B, brokers 2 and 3 have one each."""
    driver = Driver(elr=elr)
    driver.start(1, log_dirs=(A, B))
    driver.start(2, 3)
    assert not driver.create("t", (1, 2), (1, 2)).error_code
    assert not driver.create("u", (1,)).error_code
    return driver


def assign(
    driver: Driver, *assignments: tuple[int, Uuid], broker_id: int = 1, **changes: int
) -> AssignReplicasToDirsResponse:
    t, u = driver.image.topic_id("t"), driver.image.topic_id("u")
    epoch = changes.get("epoch", driver.broker(1).epoch)
    response: AssignReplicasToDirsResponse = driver.handle(
        AssignReplicasToDirsRequest(
            broker_id=broker_id,
            broker_epoch=epoch,
            assignments=tuple(
                (u, 0, directory) if index == U else (t, index, directory)
                for index, directory in assignments
            ),
        )
    )
    return response


def report_failed(driver: Driver, *directories: Uuid) -> BrokerHeartbeatResponse:
    response: BrokerHeartbeatResponse = driver.handle(
        BrokerHeartbeatRequest(
            broker_id=1,
            broker_epoch=driver.broker(1).epoch,
            metadata_offset=len(driver.log) - 1,
            want_fence=False,
            want_shut_down=False,
            offline_log_dirs=directories,
        )
    )
    return response


def test_the_reserved_ids() -> None:
    assert [is_reserved(each) for each in (MIGRATING, UNASSIGNED, LOST, A)] == [True] * 3 + [False]
    assert is_reserved(Uuid((99).to_bytes(16, "big")))
    assert not is_reserved(Uuid((100).to_bytes(16, "big")))


@pytest.mark.parametrize(
    ("directory", "registered", "online"),
    [
        (A, (A, B), True),
        (ELSEWHERE, (A, B), False),
        (UNASSIGNED, (A,), True),
        (MIGRATING, (A,), True),
        (LOST, (A,), False),
        (LOST, (), False),
        (ELSEWHERE, (), True),
    ],
)
def test_online_directories(directory: Uuid, registered: tuple[Uuid, ...], online: bool) -> None:
    assert is_online(directory, registered) == online


def test_a_broker_with_several_directories_chooses_itself() -> None:
    driver = driver_of()
    assert driver.partition("t").directories == (UNASSIGNED, uuid(10_002))
    assert assign(driver, (0, A), (1, B)).errors == (0, 0)
    assert driver.partition("t", 0).directories == (A, uuid(10_002))
    assert driver.partition("t", 1).directories == (B, uuid(10_002))
    record = driver.log[-1]
    assert isinstance(record, PartitionChangeRecord)
    assert (record.cause, record.leader, record.isr) == (Cause.DIRECTORY_ASSIGNED, -2, None)
    before = len(driver.log)
    assert assign(driver, (0, A)).errors == (0,)
    assert len(driver.log) == before, "nothing has changed"


def test_refused_assignments() -> None:
    driver = driver_of()
    assert assign(driver, (0, A), broker_id=9).error == ErrorCode.BROKER_ID_NOT_REGISTERED
    assert assign(driver, (0, A), epoch=10**6).error == ErrorCode.STALE_BROKER_EPOCH
    found = assign(driver, (0, A), (9, A), (1, UNASSIGNED), (0, B))
    assert found.errors == (
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_REQUEST,
    )
    epoch = driver.broker(3).epoch
    assert assign(driver, (0, A), broker_id=3, epoch=epoch).errors == (
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
    )
    unknown = AssignReplicasToDirsRequest(
        broker_id=1, broker_epoch=driver.broker(1).epoch, assignments=((A, 0, A),)
    )
    assert driver.handle(unknown).errors == (ErrorCode.UNKNOWN_TOPIC_ID,)


def test_a_failed_directory_moves_only_its_partitions() -> None:
    driver = driver_of()
    assign(driver, (0, A), (1, B), (U, B))
    assert not report_failed(driver, B).fenced
    assert driver.leader_and_isr("t", 0) == (1, (1, 2))
    assert driver.leader_and_isr("t", 1) == (2, (2,))
    assert driver.leader_and_isr("u") == (-1, (1,)), "the last member stays, without ELR"
    assert driver.broker(1).log_dirs == (A,)
    record = driver.log[-1]
    assert isinstance(record, BrokerRegistrationChangeRecord)
    assert (record.log_dirs, record.cause) == ((A,), Cause.DIRECTORY_FAILED)
    before = len(driver.log)
    report_failed(driver, B)
    assert len(driver.log) == before, "each heartbeat names it, and it changes nothing more"


def test_the_last_member_enters_the_elr() -> None:
    driver = driver_of(elr=True)
    assign(driver, (U, B))
    report_failed(driver, B)
    assert driver.leader_and_isr("u") == (-1, ())
    assert driver.partition("u").elr == (1,)


@pytest.mark.parametrize("moving", [1, 2])
def test_an_assignment_keeps_the_elr(moving: int) -> None:
    """PR 20716: Kafka 4.1.1 computes the change without the ELR feature, which empties the ELR."""
    driver = Driver(elr=True)
    driver.start(moving, log_dirs=(A, B))
    driver.start(*({1, 2, 3} - {moving}))
    driver.create("t", (1, 2, 3), configs={"min.insync.replicas": "2"})
    driver.create("u", (1,))
    driver.propose_isr("t", (1,), min_insync_replicas=2)
    before = driver.partition("t")
    assert (before.isr, before.elr) == ((1,), (2, 3))
    epoch = driver.broker(moving).epoch
    assert assign(driver, (0, B), broker_id=moving, epoch=epoch).errors == (0,)
    after = driver.partition("t")
    assert after.directories[moving - 1] == B
    assert (after.isr, after.elr, after.leader) == (before.isr, before.elr, before.leader)


def test_an_unassigned_replica_is_found_by_its_late_assignment() -> None:
    """The failure scan cannot find it, so the broker keeps the assignment in its queue."""
    driver = driver_of()
    report_failed(driver, B)
    assert driver.leader_and_isr("t", 1) == (1, (1, 2))
    assert assign(driver, (1, B)).errors == (0,)
    assert driver.leader_and_isr("t", 1) == (2, (2,))
    assert driver.partition("t", 1).directories[0] == B


def test_a_replica_in_a_failed_directory_does_not_join_the_isr() -> None:
    driver = driver_of()
    assign(driver, (0, B))
    report_failed(driver, B)
    assert driver.leader_and_isr("t", 0) == (2, (2,))
    assert driver.propose_isr("t", (2, 1)).error == ErrorCode.INELIGIBLE_REPLICA
    assign(driver, (0, A))
    assert driver.propose_isr("t", (2, 1)).error == ErrorCode.NONE


def test_a_replica_in_a_failed_directory_does_not_lead() -> None:
    """An unfencing elects leaders for all leaderless partitions. Broker 1 is unfenced, too."""
    driver = driver_of()
    assign(driver, (U, B))
    report_failed(driver, B)
    driver.heartbeat(2, want_fence=True)
    assert not driver.heartbeat(2).fenced
    assert not driver.broker(1).fenced
    assert driver.leader_and_isr("u") == (-1, (1,)), "broker 1 leads without a log"


def test_a_leaderless_partition_gets_a_leader_when_its_replica_moves_to_a_live_directory() -> None:
    driver = driver_of()
    assign(driver, (U, B))
    report_failed(driver, B)
    assert driver.leader_and_isr("u") == (-1, (1,))
    assign(driver, (U, A))
    assert driver.leader_and_isr("u") == (1, (1,))


def test_a_directory_returns_with_the_next_registration() -> None:
    driver = driver_of()
    assign(driver, (0, A), (U, B))
    report_failed(driver, B)
    epoch = driver.broker(1).epoch
    driver.run_until(20_000)
    driver.start(1, incarnation=2, log_dirs=(A,))
    assert driver.leader_and_isr("u") == (-1, (1,)), "the directory is still offline"
    assert driver.broker(1).epoch > epoch
    driver.run_until(40_000)
    driver.start(1, incarnation=3, log_dirs=(A, B))
    assert driver.leader_and_isr("u") == (1, (1,))


def test_a_failure_precedes_a_change_of_state() -> None:
    driver = driver_of()
    assign(driver, (U, B))
    driver.heartbeat(1, want_fence=True)
    assert driver.leader_and_isr("u") == (-1, (1,))
    assert report_failed(driver, B).fenced, "the unfencing waits for the next heartbeat"
    assert not report_failed(driver, B).fenced
    assert driver.leader_and_isr("u") == (-1, (1,))


def test_a_broker_without_a_directory_left_keeps_its_registration() -> None:
    driver = driver_of()
    assign(driver, (0, A), (1, B))
    report_failed(driver, A, B)
    assert driver.broker(1).log_dirs == (A, B)
    assert driver.leader_and_isr("t", 0) == driver.leader_and_isr("t", 1) == (2, (2,))
