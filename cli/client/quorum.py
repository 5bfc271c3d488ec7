"""The metadata quorum as a node describes it, and the check for an active controller before a
change.

Without an active controller, a broker holds a request for it until its timeout, and the outcome is
then unknown. The check costs one request, and its error is certain: nothing was sent."""

from __future__ import annotations

from dataclasses import dataclass

from quorate.cli.client.admin import PASSING, UNKNOWN_OUTCOME, Admin, check
from quorate.cli.client.connection import ConnectionLost
from quorate.cli.client.errors import NotReachable, Refused
from quorate.quorum.ids import METADATA_TOPIC
from quorate.quorum.protocol.apis import ApiKey
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.cluster import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    QuorumNode,
    QuorumPartition,
    QuorumPartitionState,
    QuorumReplicaState,
    QuorumTopic,
)
from quorate.quorum.watch.quorum_reach import LOST

WAIT_S = 5.0
"""The time, in s, for which the check waits for an active controller. An election takes less."""


@dataclass(frozen=True, slots=True)
class Quorum:
    """The response of DescribeQuorum: the metadata partition's state and the nodes' endpoints."""

    state: QuorumPartitionState
    nodes: tuple[QuorumNode, ...]

    @property
    def leader(self) -> QuorumReplicaState:
        """Return the leader's state. Raise Refused if no voter leads."""
        for voter in self.state.current_voters:
            if voter.replica_id == self.state.leader_id:
                return voter
        raise Refused("the quorum has no leader among its voters at the moment")

    @property
    def followers(self) -> list[QuorumReplicaState]:
        """Return the states of all voters except the leader."""
        voters = self.state.current_voters
        return [voter for voter in voters if voter.replica_id != self.state.leader_id]

    def max_lag(self) -> tuple[int, int]:
        """Return the lag of the slowest voter in records and in ms (-1: unknown).

        Raise Refused if no voter leads."""
        leader = self.leader
        last = min(self.state.current_voters, key=lambda voter: voter.log_end_offset)
        lag = leader.log_end_offset - last.log_end_offset
        if last.replica_id == leader.replica_id or lag == 0:
            return 0, 0
        ours, theirs = leader.last_caught_up_timestamp, last.last_caught_up_timestamp
        return lag, ours - theirs if ours >= 0 and theirs >= 0 else -1

    def endpoints(self, node_id: int) -> list[str]:
        """Return the endpoints of a node as NAME://HOST:PORT."""
        listeners = next((node.listeners for node in self.nodes if node.node_id == node_id), ())
        return [f"{each.name}://{each.host}:{each.port}" for each in listeners]


class QuorumLost(Refused):
    """The metadata quorum is lost, as the node that was asked sees it. `reason` says more."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def is_lost(answer: DescribeQuorumResponse) -> bool:
    """Return True if the node answers that it reaches no majority of the voters."""
    return (answer.error_message or "").startswith(LOST)


def describe_quorum(admin: Admin, wait_s: float | None = None) -> Quorum:
    """Return the quorum's state from the cluster.

    Raise QuorumLost if the node reports that it reaches no majority of the voters, Refused on
    another error, and NotReachable if no node answers. If `wait_s` is given, raise QuorumLost if no
    active controller answers for so long. The links to a voter that is paused or without power stay
    open for some seconds, in which a node takes the voter for reachable."""
    topic = QuorumTopic(topic_name=METADATA_TOPIC, partitions=(QuorumPartition(partition_index=0),))
    request = DescribeQuorumRequest(topics=(topic,))
    silent = f"no active controller has answered for {wait_s or 0:g} s"
    try:
        answer = admin.ask(request, DescribeQuorumResponse, error_codes, wait_s)
    except NotReachable:
        if wait_s is None:
            raise
        raise QuorumLost(silent) from None
    if is_lost(answer):
        raise QuorumLost(answer.error_message or "")
    if wait_s is not None and has_no_controller(answer):
        raise QuorumLost(silent)
    check(answer.error_code, answer.error_message)
    state = answer.topics[0].partitions[0]
    check(state.error_code, state.error_message)
    return Quorum(state, answer.nodes)


def has_no_controller(answer: DescribeQuorumResponse) -> bool:
    """Return True if the node has found no active controller that answers."""
    transient = PASSING | UNKNOWN_OUTCOME
    return any(ErrorCode.of(code) in transient for code in error_codes(answer))


def error_codes(answer: DescribeQuorumResponse) -> list[int]:
    """Return the error codes of the response and of its partitions. Return none if the quorum is
    lost, because waiting does not help."""
    if is_lost(answer):
        return []
    inner = [each.error_code for topic in answer.topics for each in topic.partitions]
    return [answer.error_code, *inner]


def require_controller(admin: Admin, undone: str) -> None:
    """Raise Refused if the cluster has no active controller. `undone` begins the error with the
    object and what was not done to it, such as "topic 'orders' was not created".

    Return if the node does not describe the quorum to this client: the request itself then shows
    what is wrong. Raise NotReachable if no node answers."""
    try:
        if admin.serves(ApiKey.DESCRIBE_QUORUM):
            describe_quorum(admin, WAIT_S)
    except QuorumLost as error:
        raise Refused(
            f"{undone}, because there is no active controller: {error.reason}. Nothing was sent. "
            "Start a majority of the controllers (`quorate status` names those that do not "
            "answer), and repeat the command"
        ) from None
    except (Refused, ConnectionLost):
        return
