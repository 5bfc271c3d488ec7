"""The lines about a node that waits: when the first one comes, and how rarely the others."""

from __future__ import annotations

import logging

import pytest

from quorate.quorum.node.waiting_log import FIRST_MS, LONGEST_PAUSE_MS, MAX_REASONS, WaitingLog
from tests.unit.rpc.kafka.fakes import FakeClock

REASON = "no controller is reachable at 1 at c1:9093"


@pytest.fixture
def reasons() -> list[str]:
    return [REASON]


@pytest.fixture
def clock(reasons: list[str], caplog: pytest.LogCaptureFixture) -> FakeClock:
    caplog.set_level(logging.INFO)
    clock = FakeClock()
    WaitingLog(clock, lambda: reasons).start()
    return clock


def passes(clock: FakeClock, seconds: int) -> None:
    """Let time pass, second by second."""
    for _ in range(seconds):
        clock.advance(1000)


def test_a_short_wait_is_not_mentioned(
    clock: FakeClock, reasons: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    passes(clock, FIRST_MS // 1000)
    reasons.clear()
    passes(clock, 100)
    assert caplog.messages == []


def test_a_long_wait_is_reported_ever_less_often_and_so_is_its_end(
    clock: FakeClock, reasons: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    passes(clock, 14)
    assert caplog.messages == [f"not ready for {waited} s: {REASON}" for waited in (3, 6, 12)]
    passes(clock, 24 * 3600)
    assert len(caplog.messages) <= 24 * 3600 * 1000 / LONGEST_PAUSE_MS + 10
    caplog.clear()
    reasons.clear()
    passes(clock, 2)
    (message,) = caplog.messages
    assert message.startswith("ready after 864")


def test_many_reasons_are_counted(
    clock: FakeClock, reasons: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    reasons.extend("x" for _ in range(20))
    passes(clock, 5)
    assert caplog.messages[0].endswith(f"; and {21 - MAX_REASONS} more")
