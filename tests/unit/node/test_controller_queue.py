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


def test_the_queue_is_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """20,000 envelopes of 32 MiB each would take 640 GB."""
    monkeypatch.setattr(controller_queue, "MAX_QUEUED_BYTES", 100)
    monkeypatch.setattr(controller_queue, "MAX_QUEUED_BYTES_PER_SOURCE", 60)
    queue: ControllerQueue[str] = ControllerQueue()
    assert [queue.push("x", "one", 30) for _ in range(3)] == [True, True, False]
    assert [queue.push("y", "other", 30) for _ in range(2)] == [True, False]
    assert [queue.push("n", None, 50) for _ in range(3)] == [True, True, False], (
        "the nodes have a bound of their own"
    )
    assert queue.push("z", "third", 10)
    assert sorted(popped(queue)) == ["n", "n", "x", "x", "y", "z"]
    assert [queue.push("x", "one", 60) for _ in range(2)] == [True, False], "all bytes are free"
    assert queue.clear() == ["x"]
    assert queue.push("x", "one", 60) and queue.push("n", None, 100)


def test_no_request_overtakes_a_larger_one_that_was_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The broker sends the refused one again. A later request of the same client would be decided
    before it."""
    monkeypatch.setattr(controller_queue, "MAX_QUEUED_BYTES_PER_SOURCE", 60)
    queue: ControllerQueue[str] = ControllerQueue()
    assert queue.push("first", "one", 30) and queue.push("second", "one", 20)
    assert not queue.push("large", "one", 30)
    assert not queue.push("small", "one", 1)
    assert queue.pop() == "first"
    assert not queue.push("small", "one", 1)
    assert queue.pop() == "second"
    assert queue.push("large", "one", 30) and queue.push("small", "one", 1)
    assert popped(queue) == ["large", "small"]


def test_a_request_of_any_size_may_wait_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller_queue, "MAX_QUEUED_BYTES", 100)
    queue: ControllerQueue[str] = ControllerQueue()
    assert queue.push("large", "one", 1000)
    assert not queue.push("small", "one", 1) and not queue.push("small", "other", 1)
    assert queue.push("large", None, 1000)
    assert not queue.push("small", None, 1)
    assert popped(queue) == ["large", "large"]
    assert queue.push("small", "other", 1)
