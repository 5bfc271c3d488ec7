"""The outputs of the core: instructions that the node carries out in this order.

`Persist` is a barrier. The effects after it leave the node only when that election is durable. The
node then calls `Raft.election_saved`. All other effects are carried out without waiting.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

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
    """Send `request` to a node. Pass the response to `Raft.response`, or None after `timeout_ms`.

    `voter_id` is a voter, the leader, or the negative id of a bootstrap server."""

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
    """The high watermark has risen: everything below `high_watermark` is committed."""

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
    """All records from `offset` on were removed from the log. They were never committed.

    The log removes whole batches. If `offset` was inside of a batch, the log ends at its start."""

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
    the configured voters apply. `voter_ids` has the ids of the voters in both cases."""

    kraft_version: int
    voters: tuple[Voter, ...]
    voter_ids: tuple[int, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class LeaderFound:
    """The address of this leader, which another node has named. It may be reported again."""

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
    """Log a problem with `replica_id`: it refuses this node, or this node refuses what it sent.
    `reason` tells the operator what to do."""

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
