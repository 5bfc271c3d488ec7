"""BrokerRegistration: each refusal, epochs, incarnations, clean and unclean restarts."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from quorate.quorum.controller.controller import Controller
from quorate.quorum.controller.state.messages import BrokerRegistrationResponse
from quorate.quorum.controller.state.settings import ControllerSettings
from quorate.quorum.ids import Uuid
from quorate.quorum.metadata.causes import Cause
from quorate.quorum.metadata.records import (
    Endpoint,
    FeatureRange,
    PartitionChangeRecord,
    RegisterBrokerRecord,
)
from quorate.quorum.protocol.errors import ErrorCode
from tests.unit.controller.harness import CLUSTER_ID, SESSION_MS, Driver, registration, uuid

GRACE_MS = 300


def try_register(driver: Driver, broker_id: int, **changes: Any) -> BrokerRegistrationResponse:
    response = driver.handle(registration(broker_id, **changes))
    assert isinstance(response, BrokerRegistrationResponse)
    return response


def feature(name: str, low: int, high: int) -> FeatureRange:
    return FeatureRange(name=name, min_supported_version=low, max_supported_version=high)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"cluster_id": "another"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
        ({"log_dirs": ()}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": (Uuid((99).to_bytes(16, "big")),)}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": (uuid(5), uuid(5))}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": (uuid(10_001),)}, ErrorCode.INVALID_REGISTRATION),  # broker 1's
        ({"features": ()}, ErrorCode.INVALID_REGISTRATION),
        ({"features": (feature("metadata.version", 7, 26),)}, ErrorCode.UNSUPPORTED_VERSION),
        ({"features": (feature("metadata.version", 28, 30),)}, ErrorCode.UNSUPPORTED_VERSION),
    ],
)
def test_what_is_refused(changes: dict[str, Any], error: ErrorCode) -> None:
    driver = Driver()
    driver.register(1)
    length = len(driver.log)
    response = try_register(driver, 2, **changes)
    assert response.error == error
    assert response.message
    assert len(driver.log) == length


def test_a_finalized_feature_that_the_broker_does_not_know_must_be_at_zero() -> None:
    features = {"metadata.version": 27, "group.version": 0, "transaction.version": 1}
    driver = Driver(ControllerSettings(cluster_id=CLUSTER_ID, node_id=3000, features=features))
    assert try_register(driver, 1).error == ErrorCode.UNSUPPORTED_VERSION
    ranges = (feature("metadata.version", 7, 27), feature("transaction.version", 0, 2))
    assert try_register(driver, 1, features=ranges).error == ErrorCode.NONE


def test_the_epoch_is_the_offset_of_the_register_record() -> None:
    driver = Driver()
    driver.start(1, 2)
    driver.create("t", (1, 2), (1, 2), (2, 1))
    driver.run_until(2 * SESSION_MS)
    driver.heartbeat(2)
    driver.heartbeat(1)
    driver.controller.connection_lost(1, driver.broker(1).epoch)
    epoch = driver.register(1, 2)
    assert isinstance(driver.log[epoch], RegisterBrokerRecord)
    assert driver.broker(1).epoch == epoch


def test_another_incarnation_is_a_duplicate_while_the_session_is_valid() -> None:
    driver = Driver()
    driver.start(1)
    driver.connect(1)
    duplicate = ErrorCode.DUPLICATE_BROKER_REGISTRATION
    assert try_register(driver, 1, incarnation=2).error == duplicate
    driver.now_ms = SESSION_MS - 1
    assert try_register(driver, 1, incarnation=2).error == duplicate
    driver.now_ms = SESSION_MS
    assert try_register(driver, 1, incarnation=2).error == ErrorCode.NONE


def test_another_incarnation_replaces_a_session_whose_connection_is_dead() -> None:
    driver = Driver()
    driver.start(1, 2)
    driver.create("t", (1, 2))
    old = driver.broker(1).epoch
    driver.connect(1)
    driver.controller.connection_lost(1, old)
    response = try_register(driver, 1, incarnation=2)
    assert response.error == ErrorCode.NONE
    assert driver.leader_and_isr("t") == (2, (2,))
    assert driver.broker(1).fenced
    # The old process is not what was registered: nothing it says counts any more.
    driver.controller.contact(1, old, now_ms=driver.now_ms)
    assert driver.broker(1).epoch == response.broker_epoch != old


def test_without_hints_another_incarnation_waits_for_the_end_of_the_session() -> None:
    """Neither a lost connection nor a missing one ends the session, as in Kafka."""
    driver = Driver(ControllerSettings(cluster_id=CLUSTER_ID, node_id=3000, hints=False))
    driver.start(1, 2)
    driver.connect(1)
    driver.controller.connection_lost(1, driver.broker(1).epoch)
    driver.now_ms = SESSION_MS - 1
    for broker_id in (1, 2):
        error = try_register(driver, broker_id, incarnation=2).error
        assert error == ErrorCode.DUPLICATE_BROKER_REGISTRATION
    driver.now_ms = SESSION_MS
    for broker_id in (1, 2):
        assert try_register(driver, broker_id, incarnation=2).error == ErrorCode.NONE


def test_a_reconnected_session_is_not_replaced() -> None:
    driver = Driver()
    driver.start(1)
    driver.controller.connection_lost(1, driver.broker(1).epoch)
    driver.connect(1)
    error = try_register(driver, 1, incarnation=2).error
    assert error == ErrorCode.DUPLICATE_BROKER_REGISTRATION


def test_after_a_takeover_another_incarnation_waits_for_the_old_ones_time_to_connect() -> None:
    driver = Driver()
    driver.start(1)
    driver.connect(1)
    driver.now_ms = 1000
    driver.activate(Controller(driver.settings, random.Random(2)))
    driver.now_ms += GRACE_MS - 1
    error = try_register(driver, 1, incarnation=2).error
    assert error == ErrorCode.DUPLICATE_BROKER_REGISTRATION
    driver.now_ms += 1
    assert try_register(driver, 1, incarnation=2).error == ErrorCode.NONE


def test_the_same_incarnation_keeps_its_epoch_and_state() -> None:
    """KAFKA-16952."""
    driver = Driver()
    driver.start(1)
    before = driver.broker(1)
    assert driver.register(1, rack="r") == before.epoch
    assert driver.broker(1) == replace(before, rack="r")


@pytest.mark.parametrize(
    ("clean", "cause"),
    [(True, Cause.SESSION_REPLACED), (False, Cause.UNCLEAN_RESTART)],
)
def test_a_restart_leaves_every_isr_but_stays_where_it_is_the_last_member(
    clean: bool, cause: Cause
) -> None:
    """Without eligible leader replicas, Kafka 4.1 treats both restarts alike (KIP-966)."""
    driver = Driver()
    driver.start(1, 2)
    driver.create("shared", (1, 2))
    driver.create("alone", (1,))
    epoch = driver.broker(1).epoch
    driver.now_ms = SESSION_MS
    driver.heartbeat(2)
    length = len(driver.log)
    driver.register(1, 2, previous_broker_epoch=epoch if clean else -1)
    assert driver.leader_and_isr("shared") == (2, (2,))
    assert driver.leader_and_isr("alone") == (-1, (1,))
    changes = [r for r in driver.log[length:] if isinstance(r, PartitionChangeRecord)]
    assert [change.cause for change in changes] == [cause, cause]
    driver.heartbeat(1)
    assert driver.leader_and_isr("alone") == (1, (1,))


def test_the_node_to_node_address_is_registered_once() -> None:
    driver = Driver()
    driver.register(1)
    endpoint = driver.broker(1).endpoint("REPLICATION")
    assert endpoint is not None
    assert (endpoint.host, endpoint.port) == ("b1", 9094)
    request = registration(2)
    driver.handle(replace(request, endpoints=(replace(request.endpoints[0], name="REPLICATION"),)))
    assert [each.name for each in driver.broker(2).endpoints] == ["REPLICATION"]


LONG = "x" * 40_000


def endpoint(name: str = "PLAINTEXT", host: str = "h", port: int = 9092) -> Endpoint:
    return Endpoint(name=name, host=host, port=port)


@pytest.mark.parametrize(
    "changes",
    [
        {"broker_id": 2**63},
        {"broker_id": 2**31},
        {"broker_id": -1},
        {"endpoints": (endpoint(port=65_536),)},
        {"endpoints": (endpoint(port=-1),)},
        {"endpoints": (endpoint(host=LONG),)},
        {"endpoints": (endpoint(name=LONG),)},
        {"endpoints": (endpoint(), endpoint())},
        {"endpoints": tuple(endpoint(f"L{i}") for i in range(17))},
        {"features": (feature("metadata.version", 7, 1 << 20),)},
        {"features": (feature("metadata.version", -1, 27),)},
        {"features": (feature("metadata.version", 7, 27), feature("empty", 2, 1))},
        {"features": (feature("metadata.version", 7, 27), feature(LONG, 0, 1))},
        {"rack": LONG},
        {"log_dirs": (Uuid(b"short"),)},
        {"log_dirs": tuple(map(uuid, range(500, 601)))},
        {"replication_address": (LONG, 9094)},
        {"replication_address": ("h", 1 << 40)},
        {"previous_broker_epoch": 1 << 63},
    ],
    ids=lambda changes: repr(changes)[:60],
)
def test_what_no_record_may_hold_is_refused(changes: dict[str, Any]) -> None:
    """Each of these requests stopped the active controller, or every broker that replayed its
    record."""
    driver = Driver()
    length = len(driver.log)
    response = try_register(driver, **{"broker_id": 2, **changes})
    assert response.error == ErrorCode.INVALID_REQUEST
    assert response.message
    assert len(driver.log) == length
    driver.register(2)
