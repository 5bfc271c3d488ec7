"""The memory budgets of a node: shares, pressure, and the choice of the connection to close."""

from __future__ import annotations

import logging

import pytest

from quorate.quorum.rpc.budget import (
    LEAST_READ_BYTES,
    NO_LIMIT_BYTES,
    SMALL_BYTES,
    STALL_MS,
    Budget,
    MemoryLimits,
)
from quorate.quorum.seams import Address
from tests.unit.rpc.kafka.fakes import FakeClock

MIB = 1 << 20
LIMIT_BYTES = 64 * MIB
SHARE_BYTES = 1 << 20


class Peer:
    """A connection that holds as many bytes as the test says."""

    def __init__(self, budget: Budget, port: int) -> None:
        self.budget = budget
        self.peer = Address("10.0.0.1", port)
        self.closed = False
        self.read = True
        self.held_bytes = 0

    def holds(self, held_bytes: int) -> None:
        self.held_bytes = held_bytes
        self.report_memory()
        self.update_reading()

    def report_memory(self) -> None:
        self.budget.set_held(self, self.held_bytes)

    def update_reading(self) -> None:
        self.read = not self.budget.must_wait(self)

    def evict(self) -> None:
        self.closed = True
        self.holds(0)


class BudgetBench:
    """A clock and one budget."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.budget = Budget("requests", "some.key", LIMIT_BYTES, self.clock)
        self.peers: list[Peer] = []

    def peer(self, held_bytes: int = 0) -> Peer:
        peer = Peer(self.budget, 5000 + len(self.peers))
        self.peers.append(peer)
        peer.holds(held_bytes)
        return peer

    def wait(self, ms: int) -> None:
        for _ in range(ms // 100):
            self.clock.advance(100)


@pytest.fixture
def node() -> BudgetBench:
    return BudgetBench()


def test_small_holdings_are_not_counted(node: BudgetBench) -> None:
    peers = [node.peer(SMALL_BYTES) for _ in range(100)]
    assert (node.budget.used_bytes, len(node.budget)) == (0, 0)
    peers[0].holds(SMALL_BYTES + 1)
    assert (node.budget.used_bytes, len(node.budget)) == (SMALL_BYTES + 1, 1)
    peers[0].holds(0)
    assert (node.budget.used_bytes, len(node.budget)) == (0, 0)
    assert node.clock.waiting == 0


def test_use_never_exceeds_the_limit(node: BudgetBench) -> None:
    """Each of forty connections would take the whole budget."""
    for _ in range(40):
        peer = node.peer()
        for step in range(1, 20):
            if peer.closed:
                break
            peer.holds(step * LIMIT_BYTES // 10)
            assert node.budget.used_bytes <= LIMIT_BYTES
            assert node.budget.used_bytes == sum(
                each.bytes for each in node.budget._holdings.values()
            )


def test_the_one_that_holds_most_for_longest_pays(
    node: BudgetBench, caplog: pytest.LogCaptureFixture
) -> None:
    attackers = [node.peer(LIMIT_BYTES // 8) for _ in range(8)]
    node.wait(1000)
    light = node.peer()
    for _ in range(1000):  # the requests of a working client are in flight for a moment
        light.holds(1 << 20)
        light.holds(0)
    assert not light.closed
    assert [each.closed for each in attackers].count(True) == 2, "one eighth is free again"
    assert "10.0.0.1:500" in caplog.text
    assert "some.key allows" in caplog.text
    assert node.budget.evicted == 2


def test_many_small_attackers_do_not_make_a_working_client_the_heaviest(node: BudgetBench) -> None:
    """Each attacker holds less than the client, but for a long time."""
    for _ in range(LIMIT_BYTES // (256 << 10)):
        node.peer(256 << 10)
    node.wait(2000)
    client = node.peer(4 << 20)
    assert not client.closed
    assert node.budget.evicted > 0


def test_under_pressure_connections_over_their_share_are_read_one_after_the_other(
    node: BudgetBench,
) -> None:
    small = node.peer(SHARE_BYTES)
    large = [node.peer(LIMIT_BYTES // 4) for _ in range(3)]
    assert [each.read for each in (small, *large)] == [True, True, False, False]
    large[0].holds(LIMIT_BYTES // 4 + MIB)
    assert large[0].read, "or it could never end"
    large[0].holds(0)
    assert [each.read for each in large[1:]] == [True, False], "the next one"
    small.holds(0)
    assert large[2].read, "without pressure all are read"


def test_large_requests_do_not_stop_each_other(node: BudgetBench) -> None:
    """Each request needs more than half of the budget until it is complete."""
    requests = [node.peer(LIMIT_BYTES // 4) for _ in range(3)]
    for each in requests:
        assert each.read
        while each.held_bytes < LIMIT_BYTES * 3 // 8:
            each.holds(each.held_bytes + MIB)
        each.holds(0)
    assert not any(each.closed for each in requests)


def test_a_connection_is_read_again_when_another_one_only_holds_less(node: BudgetBench) -> None:
    """Return the pressure ends, although no connection releases everything that it holds."""
    first, second = node.peer(LIMIT_BYTES // 2), node.peer(2 * SHARE_BYTES)
    assert not second.read
    first.holds(SHARE_BYTES // 2)
    assert second.read


def test_a_connection_that_makes_no_progress_under_pressure_is_closed(node: BudgetBench) -> None:
    stuck = [node.peer(LIMIT_BYTES // 64) for _ in range(33)]
    node.wait(STALL_MS - 1000)
    fresh = node.peer(2 * SHARE_BYTES)
    assert not any(each.closed for each in stuck)
    node.wait(2000)
    assert 0 < [each.closed for each in stuck].count(True) < 5, "then there is no pressure"
    assert not fresh.closed
    assert fresh.read
    assert node.clock.waiting == 0


def test_a_slow_reader_is_not_closed_while_it_reads(node: BudgetBench) -> None:
    """Its bytes are counted only when the budget asks for them."""
    slow = [node.peer(LIMIT_BYTES // 4) for _ in range(3)]
    for _ in range(3):
        node.wait(STALL_MS // 2)
        for each in slow:
            each.held_bytes -= each.held_bytes // 5
    assert not any(each.closed for each in slow)
    node.wait(3 * STALL_MS)
    assert any(each.closed for each in slow), "they do not read any more"


def test_the_time_in_which_a_connection_is_not_read_is_not_held_against_it(
    node: BudgetBench,
) -> None:
    first, second = node.peer(LIMIT_BYTES // 2), node.peer(2 * SHARE_BYTES)
    for _ in range(3):
        node.wait(STALL_MS // 2)
        first.holds(first.held_bytes + LIMIT_BYTES // 10)
    assert not first.closed
    assert not second.closed


def test_room_shrinks_with_use_and_is_never_nothing(node: BudgetBench) -> None:
    assert node.budget.room() == LIMIT_BYTES // 4
    node.peer(LIMIT_BYTES // 2)
    assert node.budget.room() == LIMIT_BYTES // 8
    node.peer(LIMIT_BYTES // 2)
    assert node.budget.room() == LEAST_READ_BYTES


def test_closed_connections_write_one_line_in_an_interval(
    node: BudgetBench, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        for _ in range(50):
            node.peer(LIMIT_BYTES // 2)
    assert len(caplog.records) == 1


def test_kafkas_no_limit() -> None:
    node = {
        "queued.max.request.bytes": -1,
        "quorate.queued.max.response.bytes": 5,
        "quorate.fetch.sessions.max.bytes": 7,
    }
    limits = MemoryLimits.of(node)
    assert limits == MemoryLimits(request_bytes=NO_LIMIT_BYTES, response_bytes=5, session_bytes=7)
