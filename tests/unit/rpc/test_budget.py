"""The memory budgets of a node: shares, pressure, and which connection pays."""

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
from tests.unit.kafka.fakes import FakeClock

LIMIT_BYTES = 64 << 20
SHARE_BYTES = 1 << 20


class Peer:
    def __init__(self, budget: Budget, port: int) -> None:
        self.budget = budget
        self.peer = Address("10.0.0.1", port)
        self.closed = False
        self.bounded = 0

    def holds(self, held_bytes: int) -> None:
        self.budget.hold(self, held_bytes)

    def bound(self) -> None:
        self.bounded += 1

    def evict(self) -> None:
        self.closed = True
        self.holds(0)


class Node:
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
def node() -> Node:
    return Node()


def test_small_holdings_are_not_counted(node: Node) -> None:
    peers = [node.peer(SMALL_BYTES) for _ in range(100)]
    assert (node.budget.used_bytes, len(node.budget)) == (0, 0)
    peers[0].holds(SMALL_BYTES + 1)
    assert (node.budget.used_bytes, len(node.budget)) == (SMALL_BYTES + 1, 1)
    peers[0].holds(0)
    assert (node.budget.used_bytes, len(node.budget)) == (0, 0)
    assert node.clock.waiting == 0


def test_use_never_exceeds_the_limit(node: Node) -> None:
    """Forty connections that each would take the whole budget."""
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
    node: Node, caplog: pytest.LogCaptureFixture
) -> None:
    attackers = [node.peer(LIMIT_BYTES // 8) for _ in range(8)]
    node.wait(1000)
    light = node.peer()
    for _ in range(1000):  # a client that works: its requests are in flight for a moment
        light.holds(1 << 20)
        light.holds(0)
    assert not light.closed
    assert [each.closed for each in attackers].count(True) == 2, "one eighth is free again"
    assert "10.0.0.1:500" in caplog.text
    assert "some.key allows" in caplog.text
    assert node.budget.evicted == 2


def test_many_small_attackers_do_not_make_a_working_client_the_heaviest(node: Node) -> None:
    """Each of them holds less than the client does, but for a long time."""
    for _ in range(LIMIT_BYTES // (256 << 10)):
        node.peer(256 << 10)
    node.wait(2000)
    client = node.peer(4 << 20)
    assert not client.closed
    assert node.budget.evicted > 0


def test_under_pressure_a_connection_over_its_share_is_not_read(node: Node) -> None:
    large = node.peer(LIMIT_BYTES // 2)
    assert not node.budget.over_share(LIMIT_BYTES // 2), "alone it may have all"
    others = [node.peer(2 * SHARE_BYTES) for _ in range(4)]
    assert node.budget.over_share(LIMIT_BYTES // 2)
    assert not node.budget.over_share(SHARE_BYTES)
    large.holds(0)
    assert [each.bounded for each in others] == [1] * 4, "they are read again"


def test_a_connection_that_makes_no_progress_under_pressure_is_closed(node: Node) -> None:
    stuck = [node.peer(LIMIT_BYTES // 4) for _ in range(3)]
    node.wait(STALL_MS - 1000)
    small = node.peer(SHARE_BYTES)
    fresh = node.peer(2 * SHARE_BYTES)
    assert not any(each.closed for each in stuck)
    node.wait(2000)
    assert [each.closed for each in stuck].count(True) == 2, "then there is no pressure"
    assert not small.closed
    assert not fresh.closed
    assert node.clock.waiting == 0


def test_room_shrinks_with_use_and_is_never_nothing(node: Node) -> None:
    assert node.budget.room() == LIMIT_BYTES // 4
    node.peer(LIMIT_BYTES // 2)
    assert node.budget.room() == LIMIT_BYTES // 8
    node.peer(LIMIT_BYTES // 2)
    assert node.budget.room() == LEAST_READ_BYTES


def test_one_line_a_second(node: Node, caplog: pytest.LogCaptureFixture) -> None:
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
