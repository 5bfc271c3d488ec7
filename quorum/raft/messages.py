"""The Raft messages between nodes: Kafka's Vote, BeginQuorumEpoch, EndQuorumEpoch, Fetch and
FetchSnapshot (KIP-595, 630, 853, 996), as plain values. Errors are Kafka's codes. The node-to-node
codec is in `rpc/messages.py`.

A FetchRequest's `offset` is an acknowledgement: a voter has flushed everything below it.
"""

from __future__ import annotations

from dataclasses import dataclass

from quorate.quorum.ids import EpochOffset, ReplicaKey
from quorate.quorum.raft.control import Voter
from quorate.quorum.seams import Buffer


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderAddress:
    """For those who do not know the voters' addresses from their log (KIP-853)."""

    host: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteRequest:
    cluster_id: str
    voter: ReplicaKey
    candidate: ReplicaKey
    epoch: int
    last: EpochOffset  # the candidate's last leader epoch and log end offset
    pre_vote: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteResponse:
    error: int
    epoch: int
    leader_id: int
    granted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginQuorumEpochRequest:
    cluster_id: str
    voter: ReplicaKey
    leader_id: int
    epoch: int
    leader: LeaderAddress | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginQuorumEpochResponse:
    error: int
    epoch: int
    leader_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EndQuorumEpochRequest:
    cluster_id: str
    leader_id: int
    epoch: int
    preferred_candidates: tuple[ReplicaKey, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EndQuorumEpochResponse:
    error: int
    epoch: int
    leader_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchRequest:
    cluster_id: str
    replica: ReplicaKey
    epoch: int  # current leader epoch as the fetcher knows it
    offset: int
    last_fetched_epoch: int
    max_wait_ms: int
    max_bytes: int
    high_watermark: (
        int  # what the fetcher knows; the leader answers at once when it has more (KIP-1166)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchResponse:
    error: int
    epoch: int
    leader_id: int
    high_watermark: int
    diverging: EpochOffset | None = None  # (epoch, end offset): truncate to it, then fetch again
    records: Buffer = b""
    snapshot: EpochOffset | None = None  # fetch that instead: the log no longer goes back so far
    leader: LeaderAddress | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchSnapshotRequest:
    cluster_id: str
    replica: ReplicaKey
    epoch: int
    snapshot: EpochOffset
    position: int
    max_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchSnapshotResponse:
    error: int
    epoch: int
    leader_id: int
    size_bytes: int = 0
    data: Buffer = b""
    leader: LeaderAddress | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateVoterRequest:
    cluster_id: str
    replica: ReplicaKey
    epoch: int
    voter: Voter
    join: bool = False  # it is no voter yet and wants to be one


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateVoterResponse:
    error: int
    epoch: int
    leader_id: int


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
