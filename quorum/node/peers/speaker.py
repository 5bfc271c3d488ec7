"""The node that a request speaks for: it must be the node at the other end of the link.

The handshake has established the id of that node, by its certificate if the link has TLS
(`rpc/node_identity.py`). Without this rule, a node could vote, fetch, register or change ISRs as
any other. `SPEAKER` has a row for each request between nodes.

A certificate names an id and no role. The roles are those of the Hello.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from quorate.quorum.controller.state.messages import (
    AllocateProducerIdsRequest,
    AlterPartitionRequest,
    AssignReplicasToDirsRequest,
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    ControllerRegistrationRequest,
    EnvelopeRequest,
    ReplicaLogsRequest,
)
from quorate.quorum.ids import ReplicaKey
from quorate.quorum.raft.messages import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    FetchRequest,
    FetchSnapshotRequest,
    UpdateVoterRequest,
    VoteRequest,
)
from quorate.quorum.rpc.hello import Peer
from quorate.quorum.seams import ProtocolError


class Speaker(NamedTuple):
    """The rule of one request. `field` is its field with the sender: a node id, or a ReplicaKey.
    The sender has the role `role`. None demands nothing."""

    field: str | None
    role: str | None = None


SPEAKER: Mapping[type, Speaker] = {
    VoteRequest: Speaker("candidate"),
    BeginQuorumEpochRequest: Speaker("leader_id"),
    EndQuorumEpochRequest: Speaker("leader_id"),
    FetchRequest: Speaker("replica"),
    FetchSnapshotRequest: Speaker("replica"),
    UpdateVoterRequest: Speaker("replica"),
    BrokerRegistrationRequest: Speaker("broker_id"),
    BrokerHeartbeatRequest: Speaker("broker_id"),
    AlterPartitionRequest: Speaker("broker_id"),
    AllocateProducerIdsRequest: Speaker("broker_id"),
    AssignReplicasToDirsRequest: Speaker("broker_id"),
    ControllerRegistrationRequest: Speaker("controller_id", "controller"),
    EnvelopeRequest: Speaker(None, "broker"),
    ReplicaLogsRequest: Speaker(None),
}
"""The rule of each request. An envelope speaks for a client. The ends of logs are asked of a
broker, by a controller that the broker has connected to."""


def check_speaker(peer: Peer, request: Any) -> None:
    """Raise ProtocolError if a request speaks for another node, or for another data directory, than
    its sender has, or if its sender lacks the role that the request needs."""
    field, role = SPEAKER[type(request)]
    hello = peer.hello
    if field is not None:
        spoken = getattr(request, field)
        sender: Any = hello.node_id
        if isinstance(spoken, ReplicaKey):
            sender = ReplicaKey(hello.node_id, hello.directory_id)
        if spoken != sender:
            raise ProtocolError(
                f"{type(request).__name__} speaks for {field} {spoken}, but its sender is {sender}"
            )
    if role is not None and role not in hello.roles:
        raise ProtocolError(
            f"{type(request).__name__} is a {role}'s request, but its sender {hello.node_id} has "
            f"the roles {', '.join(hello.roles)}"
        )
