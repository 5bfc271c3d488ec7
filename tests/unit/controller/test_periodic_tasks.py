"""The periodic tasks of the controller, and producer ids."""

from __future__ import annotations

from typing import Any

import pytest

from quorate.quorum.controller.state.messages import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from quorate.quorum.controller.state.settings import ControllerSettings
from quorate.quorum.metadata.causes import Cause
from quorate.quorum.metadata.records import (
    RECOVERING,
    AbortTransactionRecord,
    ConfigRecord,
    NoOpRecord,
    PartitionChangeRecord,
)
from quorate.quorum.protocol.errors import ErrorCode
from tests.unit.controller.harness import CLUSTER_ID, SESSION_MS, WITHOUT_ELR, Driver

MINUTE_MS = 60_000


def driver_with(**settings: Any) -> Driver:
    fields: dict[str, Any] = {"max_idle_interval_ms": 0, "session_timeout_ms": 100 * MINUTE_MS}
    fields = {"features": WITHOUT_ELR, **fields, **settings}
    return Driver(ControllerSettings(cluster_id=CLUSTER_ID, node_id=3000, **fields))


@pytest.mark.parametrize(
    ("percentage", "moved"), [(0, True), (24, True), (25, False), (100, False)]
)
def test_leaders_return_when_a_broker_lacks_more_than_the_percentage(
    percentage: int, moved: bool
) -> None:
    """Broker 1 is the preferred leader of four partitions and leads three of them."""
    driver = driver_with(imbalance_percentage=percentage)
    driver.start(1, 2)
    driver.create("t", (1, 2))
    driver.heartbeat(1, want_fence=True)
    driver.heartbeat(1)
    driver.create("u", (1, 2), (1, 2), (1, 2), (2, 1))
    assert driver.propose_isr("t", (1, 2)).error == 0
    assert driver.leader_and_isr("t")[0] == 2
    driver.run_until(5 * MINUTE_MS)
    assert driver.leader_and_isr("t")[0] == (1 if moved else 2)


def test_preferred_leaders_come_back_once_they_are_in_the_isr_again() -> None:
    driver = driver_with()
    driver.start(1, 2)
    driver.create("t", (1, 2), (2, 1))
    driver.heartbeat(1, want_fence=True)
    driver.heartbeat(1)
    driver.run_until(5 * MINUTE_MS)
    assert driver.leader_and_isr("t") == (2, (2,))
    driver.propose_isr("t", (2, 1))
    driver.run_until(10 * MINUTE_MS)
    assert driver.leader_and_isr("t") == (1, (2, 1))
    record = driver.log[-1]
    assert isinstance(record, PartitionChangeRecord)
    assert record.cause == Cause.LEADER_IMBALANCE


def test_balancing_goes_in_bounded_runs() -> None:
    driver = driver_with(max_elections_per_run=3)
    driver.start(1, 2)
    driver.create("t", *[(1, 2)] * 7)
    topic_id = driver.image.topic_id("t")
    driver.append(
        [
            PartitionChangeRecord(topic_id=topic_id, partition_id=index, leader=2)
            for index in range(7)
        ]
    )
    started_ms = 5 * MINUTE_MS
    for now_ms, left in ((started_ms, 4), (started_ms + 10, 1), (started_ms + 20, 0)):
        driver.run_until(now_ms)
        assert [driver.partition("t", p).leader for p in range(7)].count(2) == left


def test_balancing_can_be_turned_off() -> None:
    driver = driver_with(auto_leader_rebalance=False)
    driver.start(1, 2)
    driver.create("t", (1, 2))
    topic_id = driver.image.topic_id("t")
    driver.append([PartitionChangeRecord(topic_id=topic_id, partition_id=0, leader=2)])
    driver.run_until(20 * MINUTE_MS)
    assert driver.partition("t").leader == 2


@pytest.mark.parametrize("where", [(2, "t"), (4, ""), (4, "3000")])
def test_an_unclean_election_happens_as_soon_as_it_is_allowed(where: tuple[int, str]) -> None:
    driver = driver_with()
    driver.start(1, 2)
    driver.create("t", (1, 2))
    driver.propose_isr("t", (1,))
    driver.heartbeat(1, want_fence=True)
    driver.run_until(20 * MINUTE_MS)
    assert driver.leader_and_isr("t") == (-1, (1,))
    driver.append(
        [
            ConfigRecord(
                resource_type=where[0],
                resource_name=where[1],
                name="unclean.leader.election.enable",
                value="true",
            )
        ]
    )
    driver.run_until(20 * MINUTE_MS)
    partition = driver.partition("t")
    assert (partition.leader, partition.isr) == (2, (2,))
    assert partition.leader_recovery_state == RECOVERING
    record = driver.log[-1]
    assert isinstance(record, PartitionChangeRecord)
    assert record.cause == Cause.UNCLEAN_ELECTION


def test_an_expired_session_elects_uncleanly_at_once_where_that_is_allowed() -> None:
    driver = Driver()
    driver.start(1, 2)
    driver.create("t", (1, 2), configs={"unclean.leader.election.enable": "true"})
    driver.propose_isr("t", (1,))
    driver.run_until(SESSION_MS - 1)
    driver.heartbeat(2)
    driver.run_until(SESSION_MS)
    assert driver.leader_and_isr("t") == (2, (2,))


def test_no_op_records_come_at_their_interval() -> None:
    driver = driver_with(max_idle_interval_ms=500)
    driver.run_until(2000)
    assert [type(record) for record in driver.log[3:]] == [NoOpRecord] * 4


def test_an_open_transaction_of_the_last_controller_is_aborted() -> None:
    driver = Driver()
    result = driver.controller.activate(
        driver.image, now_ms=0, next_offset=len(driver.log), in_transaction=True
    )
    assert [type(record) for record in result.records] == [AbortTransactionRecord]


def test_producer_ids_come_in_blocks_that_do_not_overlap() -> None:
    driver = Driver()
    epoch = driver.register(1)

    def allocate(broker_epoch: int) -> AllocateProducerIdsResponse:
        response = driver.handle(AllocateProducerIdsRequest(broker_id=1, broker_epoch=broker_epoch))
        assert isinstance(response, AllocateProducerIdsResponse)
        return response

    blocks = [allocate(epoch) for _ in range(2)]
    assert [(block.first_producer_id, block.count) for block in blocks] == [(0, 1000), (1000, 1000)]
    assert allocate(epoch + 1).error == ErrorCode.STALE_BROKER_EPOCH
    assert driver.image.next_producer_id == 2000
