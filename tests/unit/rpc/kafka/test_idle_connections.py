"""Idle client connections: which ones are closed, and when the next check is due."""

from __future__ import annotations

import logging

import pytest

from quorate.quorum.rpc.kafka.idle_connections import close_idle
from tests.unit.rpc.kafka.test_connection_quotas import Port


class Used:
    """A connection that was used at `used_ms`."""

    def __init__(self, used_ms: int, *, has_requests: bool = False) -> None:
        self.used_ms = used_ms
        self.has_requests = has_requests
        self.reasons: list[str] = []

    def close_with(self, reason: str, level: int) -> None:
        assert level == logging.INFO, "idle clients are no problem"
        self.reasons.append(reason)


def test_a_connection_is_idle_when_the_whole_time_has_passed() -> None:
    idle, used, waiting = Used(4000), Used(4001), Used(0, has_requests=True)
    close_idle([idle, used, waiting], max_idle_ms=1000, now_ms=5000)
    assert [each.reasons for each in (idle, used, waiting)] == [["idle for 1000 ms"], [], []]


@pytest.mark.parametrize(
    ("max_idle_ms", "used_ms", "next_ms"),
    [
        (1000, (4500, 4700), 500),  # when the first of them may be idle
        (1000, (4001,), 100),  # but not earlier than a tenth of the time
        (50, (4951,), 10),  # and never in a busy loop
        (0, (4951,), 10),
        (1000, (), 1000),
        (1000, (3000,), 1000),  # closed
    ],
)
def test_the_next_check_is_due_when_a_connection_may_be_idle(
    max_idle_ms: int, used_ms: tuple[int, ...], next_ms: int
) -> None:
    assert close_idle(map(Used, used_ms), max_idle_ms, now_ms=5000) == next_ms


def test_idle_connections_are_closed_by_one_timer(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    port = Port(max_idle_ms=1000)
    idle, used, waiting = port.client(), port.client(), port.client()
    assert port.clock.waiting == 1
    port.clock.advance(600)
    used.ask()
    used.answer()
    waiting.ask()
    port.clock.advance(400)
    assert not idle.is_open()
    assert "idle for 1000 ms" in caplog.text
    idle.gone()
    port.clock.advance(599)
    assert used.is_open()
    port.clock.advance(100)
    assert not used.is_open()
    used.gone()
    for _ in range(50):
        port.clock.advance(100)
    assert waiting.is_open(), "it waits for us"
    waiting.answer()
    for _ in range(12):
        port.clock.advance(100)
    assert not waiting.is_open()
    waiting.gone()
    assert port.clock.waiting == 0


def test_nobody_is_idle_when_that_is_switched_off() -> None:
    port = Port(max_idle_ms=-1)
    client = port.client()
    assert port.clock.waiting == 0, "no timer"
    port.clock.advance(10**9)
    assert client.is_open()
    assert port.clock.waiting == 0
