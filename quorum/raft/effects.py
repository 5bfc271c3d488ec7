"""The outputs of the core: instructions that the node carries out in this order.

`Persist` is a barrier. The effects after it leave the node only when that election is durable. The
node then calls `Raft.election_saved`. All other effects are carried out without waiting.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from quorate.quorum.ids import EpochOffset
from quorate.quorum.raft.control_records import Voter
from quorate.quorum.raft.election import Election
from quorate.quorum.raft.messages import Request, Response


class Role(enum.StrEnum):
    """The roles of a node in its epoch (`states.py`)."""

    UNATTACHED = "unattached"
    PROSPECTIVE = "prospective"
    CANDIDATE = "candidate"
    FOLLOWER = "follower"
    LEADER = "leader"
    RESIGNED = "resigned"


@dataclass(frozen=True, slots=True)
class Send:
    """Send `request` to the voter. Pass the response to `Raft.response`, or None after
    `timeout_ms`."""

    voter_id: int
    token: int
    request: Request
    timeout_ms: int


@dataclass(frozen=True, slots=True)
class Reply:
    """Respond to the request that `Raft.request` received with `token`."""

    token: int
    response: Response


@dataclass(frozen=True, slots=True)
class Persist:
    """Save `election` durably, then call `Raft.election_saved`. Later effects wait for it."""

    election: Election


@dataclass(frozen=True, slots=True)
class Flush:
    """Make the log durable up to `offset`, then call `Raft.flushed` with this epoch and offset."""

    epoch: int
    offset: int


@dataclass(frozen=True, slots=True)
class Committed:
    """The high watermark has risen to `high_watermark`."""

    high_watermark: int


@dataclass(frozen=True, slots=True)
class RoleChanged:
    """The role, the epoch or the known leader has changed. `leader_id` is NO_NODE if no leader is
    known."""

    role: Role
    epoch: int
    leader_id: int


@dataclass(frozen=True, slots=True)
class Truncated:
    """The log now ends at `offset`. The removed records were never committed."""

    offset: int


@dataclass(frozen=True, slots=True)
class InstallSnapshot:
    """All bytes of this snapshot are received. Check them, make them durable, then call
    `Raft.snapshot_checked`, with a size of -1 if they are not a whole snapshot."""

    snapshot: EpochOffset


@dataclass(frozen=True, slots=True)
class SnapshotInstalled:
    """The snapshot has replaced the log, which now starts at the snapshot's end. Replace the image,
    too."""

    snapshot: EpochOffset


@dataclass(frozen=True, slots=True)
class VotersChanged:
    """`voters` is the voter set from now on, with addresses. At kraft.version 0 it is empty, and
    the configured voters apply."""

    kraft_version: int
    voters: tuple[Voter, ...]


@dataclass(frozen=True, slots=True)
class LeaderFound:
    """Another node named the address of this leader."""

    leader_id: int
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class ProbeVoter:
    """Check that this replica answers at its address, then call `Raft.voter_probed`."""

    token: int
    voter: Voter


@dataclass(frozen=True, slots=True)
class VoterChangeResult:
    """The result of the change of the voters that was requested with `token`. `error` is a Kafka
    code."""

    token: int
    error: int
    message: str


@dataclass(frozen=True, slots=True)
class Resigned:
    """The resignation that `Raft.resign` started is complete. The node can stop."""


@dataclass(frozen=True, slots=True)
class CaughtUp:
    """The log of a node that had lost records is complete and durable. Save that this node may
    vote, then call `Raft.caught_up`."""


@dataclass(frozen=True, slots=True)
class PeerProblem:
    """Log that `replica_id` was refused, or refused this node, for a reason that an operator has to
    act on."""

    replica_id: int
    reason: str


Effect = (
    Send
    | Reply
    | Persist
    | Flush
    | Committed
    | RoleChanged
    | Truncated
    | InstallSnapshot
    | SnapshotInstalled
    | VotersChanged
    | LeaderFound
    | ProbeVoter
    | VoterChangeResult
    | Resigned
    | CaughtUp
    | PeerProblem
)
