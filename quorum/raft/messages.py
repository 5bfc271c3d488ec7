"""The Raft messages between nodes: Kafka's Vote, BeginQuorumEpoch, EndQuorumEpoch, Fetch and
FetchSnapshot (KIP-595, 630, 853, 996), as plain values. Errors are Kafka's codes. The node-to-node
codec is in `rpc/messages.py`.

A FetchRequest's `offset` is an acknowledgement: a voter has flushed everything below it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from quorate.quorum.bounds import (
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
from quorate.quorum.ids import EpochOffset, ReplicaKey
from quorate.quorum.raft.control_records import Voter
from quorate.quorum.seams import Buffer

MAX_VOTERS = 1000
"""In one message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderAddress:
    """For those who do not know the voters' addresses from their log (KIP-853)."""

    host: Host
    port: Port


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteRequest:
    cluster_id: Name
    voter: ReplicaKey
    candidate: ReplicaKey
    epoch: Epoch
    last: EpochOffset  # the candidate's last leader epoch and log end offset
    pre_vote: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteResponse:
    error: ErrorNumber
    epoch: Epoch
    leader_id: NodeIdOrNone
    granted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginQuorumEpochRequest:
    cluster_id: Name
    voter: ReplicaKey
    leader_id: NodeIdOrNone
    epoch: Epoch
    leader: LeaderAddress | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginQuorumEpochResponse:
    error: ErrorNumber
    epoch: Epoch
    leader_id: NodeIdOrNone


@dataclass(frozen=True, slots=True, kw_only=True)
class EndQuorumEpochRequest:
    cluster_id: Name
    leader_id: NodeIdOrNone
    epoch: Epoch
    preferred_candidates: Annotated[tuple[ReplicaKey, ...], Items(MAX_VOTERS)]


@dataclass(frozen=True, slots=True, kw_only=True)
class EndQuorumEpochResponse:
    error: ErrorNumber
    epoch: Epoch
    leader_id: NodeIdOrNone


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchRequest:
    cluster_id: Name
    replica: ReplicaKey
    epoch: Epoch  # current leader epoch as the fetcher knows it
    offset: Offset
    last_fetched_epoch: Epoch
    max_wait_ms: Millis
    max_bytes: Size
    high_watermark: Offset
    """The fetcher's. The leader answers immediately when its own is higher (KIP-1166)."""
    catching_up: bool = False
    """The fetcher's directory lost records. Its offset acknowledges nothing and may step back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchResponse:
    error: ErrorNumber
    epoch: Epoch
    leader_id: NodeIdOrNone
    high_watermark: Offset
    diverging: EpochOffset | None = None  # (epoch, end offset): truncate to it, then fetch again
    records: Annotated[Buffer, Bytes(MAX_NODE_FRAME_BYTES)] = b""
    snapshot: EpochOffset | None = None  # fetch that instead: the log no longer goes back so far
    leader: LeaderAddress | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchSnapshotRequest:
    cluster_id: Name
    replica: ReplicaKey
    epoch: Epoch
    snapshot: EpochOffset
    position: Offset
    max_bytes: Size


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchSnapshotResponse:
    error: ErrorNumber
    epoch: Epoch
    leader_id: NodeIdOrNone
    size_bytes: Offset = 0
    data: Annotated[Buffer, Bytes(MAX_NODE_FRAME_BYTES)] = b""
    leader: LeaderAddress | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateVoterRequest:
    cluster_id: Name
    replica: ReplicaKey
    epoch: Epoch
    voter: Voter
    join: bool = False  # it is no voter yet and wants to be one


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateVoterResponse:
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
