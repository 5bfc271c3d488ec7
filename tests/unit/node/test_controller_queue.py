"""The order in which the active controller takes requests."""

from __future__ import annotations

import pytest

from quorate.quorum.node.controller import controller_queue
from quorate.quorum.node.controller.controller_queue import ControllerQueue


def popped(queue: ControllerQueue[str]) -> list[str]:
    return [queue.pop() for _ in range(len(queue))]


def test_nodes_come_before_clients_who_do_not_starve() -> None:
    queue: ControllerQueue[str] = ControllerQueue()
    for number in range(3):
        assert queue.push(f"client {number}", "one")
    for number in range(3):
        assert queue.push(f"node {number}", None)
    assert popped(queue) == ["node 0", "client 0", "node 1", "client 1", "node 2", "client 2"]


def test_a_source_with_many_requests_delays_only_itself() -> None:
    queue: ControllerQueue[str] = ControllerQueue()
    for number in range(4):
        assert queue.push(f"greedy {number}", "greedy")
    assert queue.push("modest 0", "modest")
    assert queue.push("modest 1", "modest")
    expected = ["greedy 0", "modest 0", "greedy 1", "modest 1", "greedy 2", "greedy 3"]
    assert popped(queue) == expected, "the order within a source is kept"
    assert not queue._clients, "an empty source leaves nothing behind"


def test_the_queue_is_bounded_in_all_and_per_source(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller_queue, "MAX_QUEUED", 3)
    monkeypatch.setattr(controller_queue, "MAX_QUEUED_PER_SOURCE", 2)
    queue: ControllerQueue[str] = ControllerQueue()
    assert [queue.push("x", "one") for _ in range(3)] == [True, True, False]
    assert [queue.push("x", "other") for _ in range(2)] == [True, False]
    assert [queue.push("x", None) for _ in range(4)] == [True, True, True, False], (
        "a broker whose heartbeats are refused would be fenced"
    )
    assert queue.clear() == ["x"] * 6
    assert not len(queue)
    with pytest.raises(IndexError):
        queue.pop()
