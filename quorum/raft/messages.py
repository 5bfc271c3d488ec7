"""The Raft messages between nodes, as plain values (KIP-595, KIP-630, KIP-853, KIP-996).

They are Kafka's Vote, BeginQuorumEpoch, EndQuorumEpoch, Fetch, FetchSnapshot and UpdateRaftVoter.
`error` fields hold Kafka's error codes. In every response, `epoch` and `leader_id` are those of the
responder; the leader is NO_NODE if it knows none, also in a response with an error. In a request,
`epoch` is the sender's. Sizes are in bytes and times in ms. `rpc/messages.py` encodes the messages.
Their field names are part of the node protocol.

Invariant: a voter has flushed everything below the `offset` of its FetchRequest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from quorate.quorum.ids import EpochOffset, ReplicaKey
from quorate.quorum.node_message_bounds import (
    MAX_NODE_FRAME_BYTES,
    Bytes,
    Epoch,
    ErrorNumber,
    Host,
    Items,
    Millis,
    Name,
    NodeIdOrNone,
    Offset,
    Port,
    Size,
)
from quorate.quorum.raft.control_records import Voter
from quorate.quorum.seams import Buffer

MAX_VOTERS = 1000
"""The maximum number of voters in one message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderAddress:
    """The leader's address, for nodes whose log does not hold the voters' addresses (KIP-853)."""

    host: Host
    port: Port


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteRequest:
    """A candidate asks `voter` for its vote or pre-vote.

    `last` is the epoch and the end offset of the candidate's log. A pre-vote names the candidate's
    current epoch, a vote the new one.
    """

    cluster_id: Name
    voter: ReplicaKey
    candidate: ReplicaKey
    epoch: Epoch
    last: EpochOffset  # last epoch and end offset of the candidate's log
    pre_vote: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteResponse:
    """The response to a vote or pre-vote."""

    error: ErrorNumber
    epoch: Epoch
    leader_id: NodeIdOrNone
    granted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginQuorumEpochRequest:
    """A new leader announces itself to `voter`. `leader` is its address, if it knows that."""

    cluster_id: Name
    voter: ReplicaKey
    leader_id: NodeIdOrNone
    epoch: Epoch
    leader: LeaderAddress | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginQuorumEpochResponse:
    """The response to BeginQuorumEpoch."""

    error: ErrorNumber
    epoch: Epoch
    leader_id: NodeIdOrNone


@dataclass(frozen=True, slots=True, kw_only=True)
class EndQuorumEpochRequest:
    """A resigned leader asks for an election. The voter with the longest log comes first in
    `preferred_candidates`, which is empty if the leader has restarted."""

    cluster_id: Name
    leader_id: NodeIdOrNone
    epoch: Epoch
    preferred_candidates: Annotated[tuple[ReplicaKey, ...], Items(MAX_VOTERS)]


@dataclass(frozen=True, slots=True, kw_only=True)
class EndQuorumEpochResponse:
    """The response to EndQuorumEpoch."""

    error: ErrorNumber
    epoch: Epoch
    leader_id: NodeIdOrNone


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchRequest:
    """A replica asks for the records from `offset` on. A voter also acknowledges those below it.

    `last_fetched_epoch` is the epoch of the last record of its log. The leader responds when it has
    records for the replica, or after `max_wait_ms`."""

    cluster_id: Name
    replica: ReplicaKey
    epoch: Epoch  # the fetcher's epoch
    offset: Offset
    last_fetched_epoch: Epoch
    max_wait_ms: Millis
    max_bytes: Size
    high_watermark: Offset
    """The fetcher's high watermark. The leader responds as soon as its own is higher (KIP-1166)."""
    catching_up: bool = False
    """True if the fetcher's directory lost records. Its offset then acknowledges nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchResponse:
    """Records, or the order to truncate (`diverging`) or to fetch a snapshot (`snapshot`).

    At most one of the three is set. Records are whole batches.
    """

    error: ErrorNumber
    epoch: Epoch
    leader_id: NodeIdOrNone
    high_watermark: Offset
    diverging: EpochOffset | None = None
    """The leader's largest epoch up to the fetcher's last one, with its end offset. The fetcher
    truncates its log to the part that can agree with the leader's, and fetches again."""
    records: Annotated[Buffer, Bytes(MAX_NODE_FRAME_BYTES)] = b""
    snapshot: EpochOffset | None = None  # fetch this snapshot instead of the log
    leader: LeaderAddress | None = None
    replaced_voter: ReplicaKey | None = None
    """The voter that has the fetcher's id and another directory id. The fetcher then does not vote.
    At kraft.version 0 it cannot know that from its own log and configuration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchSnapshotRequest:
    """A replica asks for the bytes of `snapshot` from `position` on."""

    cluster_id: Name
    replica: ReplicaKey
    epoch: Epoch
    snapshot: EpochOffset
    position: Offset
    max_bytes: Size


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchSnapshotResponse:
    """A chunk of a snapshot, from the requested position on. `size_bytes` is the size of the whole
    snapshot."""

    error: ErrorNumber
    epoch: Epoch
    leader_id: NodeIdOrNone
    size_bytes: Offset = 0
    data: Annotated[Buffer, Bytes(MAX_NODE_FRAME_BYTES)] = b""
    leader: LeaderAddress | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateVoterRequest:
    """A controller reports its own addresses and versions to the leader.

    `join` asks the leader to make the controller a voter. Otherwise it must be a voter already.
    """

    cluster_id: Name
    replica: ReplicaKey
    epoch: Epoch
    voter: Voter
    join: bool = False  # True if the sender wants to become a voter


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateVoterResponse:
    """The response to UpdateVoter."""

    error: ErrorNumber
    epoch: Epoch
    leader_id: NodeIdOrNone


Request = (
    VoteRequest
    | BeginQuorumEpochRequest
    | EndQuorumEpochRequest
    | FetchRequest
    | FetchSnapshotRequest
    | UpdateVoterRequest
)
Response = (
    VoteResponse
    | BeginQuorumEpochResponse
    | EndQuorumEpochResponse
    | FetchResponse
    | FetchSnapshotResponse
    | UpdateVoterResponse
)
