"""The boundary of the node port: exceptions that stop the node, and answers to the others."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from quorate.quorum.controller.state.messages import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    EnvelopeRequest,
    EnvelopeResponse,
)
from quorate.quorum.ids import ReplicaKey, Uuid
from quorate.quorum.log_limit import INTERVAL_MS
from quorate.quorum.node.peers.node_requests import NodeRequests
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.raft.errors import InvariantViolation
from quorate.quorum.raft.messages import BeginQuorumEpochRequest
from quorate.quorum.rpc.hello import Hello, Peer
from quorate.quorum.rpc.messages import VERSIONS
from quorate.quorum.seams import Address, ProtocolError
from quorate.quorum.state_in_doubt import StateInDoubt
from tests.unit.rpc.kafka.fakes import FakeClock

DIRECTORY = Uuid(b"d" * 16)
PEER = Peer(
    Hello(
        versions=VERSIONS,
        cluster_id="c",
        node_id=7,
        directory_id=DIRECTORY,
        roles=("broker", "controller"),
        incarnation_id=Uuid(b"i" * 16),
    ),
    Address("10.0.0.7", 1234),
)
HEARTBEAT = BrokerHeartbeatRequest(
    broker_id=7, broker_epoch=1, metadata_offset=0, want_fence=False, want_shut_down=False
)
ENVELOPE = EnvelopeRequest(api_key=19, version=7, client_id="", body=b"")


class Boundary:
    def __init__(self, error: Exception) -> None:
        self.clock = FakeClock()
        self.failed: list[BaseException] = []
        self.replies: list[Any] = []
        self.error = error
        self.requests = NodeRequests(self.clock, self.failed.append)
        self.handle = self.requests.guarded(self._raise)

    def _raise(self, peer: Peer, message: Any, reply: Any) -> None:
        raise self.error

    def take(self, message: Any) -> None:
        self.handle(PEER, message, self.replies.append)


@pytest.mark.parametrize(
    "error", [StateInDoubt("half"), InvariantViolation("broken"), OSError(5, "disk")]
)
def test_a_state_in_doubt_stops_the_node(error: Exception) -> None:
    boundary = Boundary(error)
    boundary.take(HEARTBEAT)
    assert boundary.failed == [error]
    assert not boundary.replies


@pytest.mark.parametrize("error", [ValueError("x"), RecursionError(), MemoryError(), KeyError(1)])
def test_any_other_exception_fails_its_request(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    boundary = Boundary(error)
    with caplog.at_level(logging.ERROR, "quorate.node"):
        boundary.take(HEARTBEAT)
        boundary.take(ENVELOPE)
    assert boundary.replies == [
        BrokerHeartbeatResponse(error=ErrorCode.UNKNOWN_SERVER_ERROR),
        EnvelopeResponse(error=ErrorCode.UNKNOWN_SERVER_ERROR),
    ]
    assert not boundary.failed
    assert boundary.requests.failures == {"BrokerHeartbeatRequest": 1, "EnvelopeRequest": 1}
    assert (
        "handling BrokerHeartbeatRequest of node 7 (10.0.0.7:1234) failed (message " in caplog.text
    )


def test_a_request_without_an_error_of_its_own_closes_the_link() -> None:
    boundary = Boundary(ValueError("x"))
    with pytest.raises(ProtocolError, match="could not be handled") as raised:
        boundary.take(begin(7))
    assert raised.value.__context__ is None
    assert not boundary.failed


def test_failures_are_logged_at_a_bounded_rate(caplog: pytest.LogCaptureFixture) -> None:
    boundary = Boundary(ValueError("y" * 10_000))
    with caplog.at_level(logging.ERROR, "quorate.node"):
        for _ in range(100):
            boundary.take(HEARTBEAT)
        assert len(caplog.records) == 1
        boundary.clock.advance(INTERVAL_MS)
        boundary.take(HEARTBEAT)
    assert len(caplog.records) == 2
    assert "(99 more like it were not logged)" in caplog.text
    assert boundary.requests.failures["BrokerHeartbeatRequest"] == 101
    assert max(map(len, caplog.messages)) < 1000


def begin(leader_id: int) -> BeginQuorumEpochRequest:
    voter = ReplicaKey(1, DIRECTORY)
    return BeginQuorumEpochRequest(cluster_id="c", voter=voter, leader_id=leader_id, epoch=1)
