"""Scripted histories of the whole controller: start, failover, shutdown, restart."""

from __future__ import annotations

from tests.unit.controller.harness import SESSION_MS, Driver


def test_first_activation_writes_the_bootstrap_records() -> None:
    driver = Driver()
    assert [type(record).__name__ for record in driver.log] == [
        "BeginTransactionRecord",
        "FeatureLevelRecord",
        "EndTransactionRecord",
    ]
    assert driver.image.features["metadata.version"] == 27


def test_a_broker_registers_catches_up_and_serves() -> None:
    driver = Driver()
    epoch = driver.register(1)
    assert epoch == len(driver.log) - 1 == driver.broker(1).epoch
    behind = driver.heartbeat(1, offset=epoch - 1)
    assert behind.fenced and not behind.caught_up
    waiting = driver.heartbeat(1, want_fence=True)
    assert waiting.fenced and waiting.caught_up
    assert not driver.heartbeat(1).fenced
    assert driver.broker(1).active


def test_an_expired_session_fences_and_moves_leaders() -> None:
    driver = Driver()
    driver.start(1, 2, 3)
    driver.create("t", (1, 2, 3))
    driver.run_until(SESSION_MS - 1)
    driver.heartbeat(2)
    driver.heartbeat(3)
    driver.run_until(SESSION_MS)
    assert driver.broker(1).fenced
    assert driver.leader_and_isr("t") == (2, (2, 3))
    assert driver.partition("t").leader_epoch == 1
