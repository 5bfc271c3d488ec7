"""BrokerHeartbeat: the table of states, catching up, controlled shutdown, contact."""

from __future__ import annotations

import random

import pytest

from quorate.quorum.controller.controller import Controller
from quorate.quorum.controller.state.messages import BrokerHeartbeatRequest
from quorate.quorum.controller.state.sessions import NEVER_MS
from quorate.quorum.metadata.causes import Cause
from quorate.quorum.metadata.records import (
    BrokerRegistrationChangeRecord,
    NoOpRecord,
    PartitionChangeRecord,
)
from quorate.quorum.protocol.errors import ErrorCode
from tests.unit.controller.harness import SESSION_MS, Driver

FENCED, UNFENCED, SHUTTING_DOWN = "fenced", "unfenced", "in controlled shutdown"


def state(driver: Driver, broker_id: int) -> str:
    broker = driver.broker(broker_id)
    if broker.fenced:
        return FENCED
    return SHUTTING_DOWN if broker.in_controlled_shutdown else UNFENCED


def in_state(now: str, *, leads: bool) -> Driver:
    """Bring broker 1 into that state. Broker 2 is active and up to date."""
    driver = Driver()
    driver.start(2)
    driver.register(1)
    if now == FENCED:
        return driver
    driver.heartbeat(1)
    driver.create("led", (1, 2) if leads or now == SHUTTING_DOWN else (2, 1))
    if now == SHUTTING_DOWN:
        driver.heartbeat(1, want_shut_down=True)
        if leads:
            # No rule gives it leadership back, so a record has to.
            topic_id = driver.image.topic_id("led")
            driver.append(
                [PartitionChangeRecord(topic_id=topic_id, partition_id=0, leader=1, isr=(1, 2))]
            )
    return driver


@pytest.mark.parametrize(
    ("now", "leads", "want_fence", "want_shut_down", "following", "may_go"),
    [
        (FENCED, False, False, True, FENCED, True),
        (FENCED, False, True, True, FENCED, True),
        (FENCED, False, False, False, UNFENCED, False),
        (FENCED, False, True, False, FENCED, False),
        (UNFENCED, True, True, True, FENCED, True),
        (UNFENCED, True, True, False, FENCED, False),
        (UNFENCED, True, False, True, SHUTTING_DOWN, False),
        (UNFENCED, False, False, True, FENCED, True),
        (UNFENCED, True, False, False, UNFENCED, False),
        (SHUTTING_DOWN, True, False, True, SHUTTING_DOWN, False),
        (SHUTTING_DOWN, False, False, True, SHUTTING_DOWN, False),  # broker 2 is behind
    ],
)
def test_next_state(
    now: str, leads: bool, want_fence: bool, want_shut_down: bool, following: str, may_go: bool
) -> None:
    driver = in_state(now, leads=leads)
    assert state(driver, 1) == now
    response = driver.heartbeat(1, want_fence=want_fence, want_shut_down=want_shut_down)
    assert state(driver, 1) == following
    assert response.should_shut_down == may_go
    assert response.fenced == (following == FENCED)


def test_controlled_shutdown_moves_leaders_and_waits_for_the_slowest_active_broker() -> None:
    driver = Driver()
    driver.start(1, 2, 3)
    driver.create("t", (1, 2, 3))
    driver.create("alone", (1,))
    before = len(driver.log) - 1
    assert not driver.heartbeat(1, want_shut_down=True).should_shut_down
    assert driver.leader_and_isr("t") == (2, (2, 3))
    assert driver.leader_and_isr("alone") == (-1, (1,))
    moved = len(driver.log) - 1
    for offset_2, offset_3, may_go in ((moved, before, False), (before, moved, False)):
        driver.heartbeat(2, offset=offset_2)
        driver.heartbeat(3, offset=offset_3)
        assert driver.heartbeat(1, want_shut_down=True).should_shut_down == may_go
    driver.heartbeat(2, offset=moved)
    assert driver.heartbeat(1, want_shut_down=True).should_shut_down
    assert driver.broker(1).fenced


def test_a_broker_that_shuts_down_leads_nothing_new() -> None:
    driver = Driver()
    driver.start(1, 2)
    driver.create("t", (1, 2))
    driver.heartbeat(1, want_shut_down=True)
    assert driver.propose_isr("t", (2, 1)).error == ErrorCode.INELIGIBLE_REPLICA


def test_kafka_13959_no_op_records_do_not_keep_a_broker_from_unfencing() -> None:
    """The broker must have replayed its own registration, not the moving end of the log."""
    driver = Driver()
    epoch = driver.register(1)
    driver.append([NoOpRecord()] * 50)
    response = driver.heartbeat(1, offset=epoch)
    assert response.caught_up and not response.fenced


def test_unfencing_requires_replay_past_the_fence() -> None:
    driver = Driver()
    driver.start(1, 2)
    driver.create("t", (1, 2))
    driver.now_ms = SESSION_MS
    driver.heartbeat(2)
    driver.run_until(SESSION_MS)
    fence = len(driver.log) - 1
    record = driver.log[fence]
    assert isinstance(record, BrokerRegistrationChangeRecord) and record.fenced == 1
    assert driver.heartbeat(1, offset=fence - 1).fenced
    assert not driver.heartbeat(1, offset=fence).fenced


def test_after_a_takeover_a_fenced_broker_catches_up_to_where_the_new_controller_began() -> None:
    driver = Driver()
    epoch = driver.register(1)
    driver.append([NoOpRecord()])
    driver.activate(Controller(driver.settings, random.Random(2)))
    assert driver.heartbeat(1, offset=epoch).fenced
    assert not driver.heartbeat(1, offset=epoch + 1).fenced


@pytest.mark.parametrize(
    ("broker_id", "epoch_shift", "error"),
    [(1, 1, ErrorCode.STALE_BROKER_EPOCH), (9, 0, ErrorCode.BROKER_ID_NOT_REGISTERED)],
)
def test_a_heartbeat_of_an_unknown_incarnation_is_refused(
    broker_id: int, epoch_shift: int, error: ErrorCode
) -> None:
    driver = Driver()
    epoch = driver.register(1)
    response = driver.handle(
        BrokerHeartbeatRequest(
            broker_id=broker_id,
            broker_epoch=epoch + epoch_shift,
            metadata_offset=100,
            want_fence=False,
            want_shut_down=False,
        )
    )
    assert response.error == error


def test_kafka_17793_contact_counts_before_the_heartbeat_is_handled() -> None:
    """A heartbeat that waited too long still proves that the broker is alive (KAFKA-15019, too)."""
    driver = Driver()
    driver.start(1)
    driver.controller.contact(1, driver.broker(1).epoch, now_ms=SESSION_MS - 1)
    driver.run_until(2 * SESSION_MS - 2)
    assert not driver.broker(1).fenced
    driver.run_until(2 * SESSION_MS - 1)
    assert driver.broker(1).fenced


def test_contact_in_the_past_does_not_shorten_a_session() -> None:
    driver = Driver()
    driver.start(1)
    epoch = driver.broker(1).epoch
    driver.controller.contact(1, epoch, now_ms=500)
    driver.controller.contact(1, epoch, now_ms=100)
    driver.controller.contact(1, epoch - 1, now_ms=900)
    driver.run_until(SESSION_MS + 499)
    assert not driver.broker(1).fenced


def test_one_stale_broker_is_fenced_at_a_time() -> None:
    driver = Driver()
    driver.start(1, 2, 3)
    driver.create("t", (1, 2, 3))
    driver.now_ms = SESSION_MS
    for fenced in (1, 2, 3):
        assert driver.controller.deadline_ms() <= driver.now_ms
        driver.take(driver.controller.tick(driver.now_ms))
        assert [b for b in (1, 2, 3) if driver.broker(b).fenced] == list(range(1, fenced + 1))
    assert driver.leader_and_isr("t") == (-1, (3,))


def test_a_takeover_gives_every_broker_a_fresh_session() -> None:
    driver = Driver()
    driver.start(1)
    driver.now_ms = SESSION_MS - 1
    driver.activate(driver.controller)
    driver.run_until(2 * SESSION_MS - 2)
    assert not driver.broker(1).fenced


def test_a_controller_that_is_not_active_has_no_deadline() -> None:
    driver = Driver()
    driver.start(1)
    driver.controller.deactivate()
    assert driver.controller.deadline_ms() == NEVER_MS


def test_brokers_that_fall_silent_are_fenced_in_the_order_of_their_last_contact() -> None:
    """One broker is fenced at a time, so the partition moves to the broker that was heard last."""
    driver = Driver(elr=True)
    driver.start(1, 2, 3)
    driver.create("t", (1, 2, 3))
    for delay_ms, broker_id in ((100, 3), (200, 1), (300, 2)):
        driver.now_ms = delay_ms
        driver.heartbeat(broker_id)
    length = len(driver.log)
    driver.run_until(10 * SESSION_MS)
    fenced = [
        (record.broker_id, record.cause)
        for record in driver.log[length:]
        if isinstance(record, BrokerRegistrationChangeRecord)
    ]
    assert fenced == [(each, Cause.SESSION_EXPIRED) for each in (3, 1, 2)]
    assert driver.partition("t").last_known_elr == (2,)
