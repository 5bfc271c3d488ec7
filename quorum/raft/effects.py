"""What the core wants done, in this order.

`Persist` is a barrier: what stands after it leaves the node only once that election is durable, and
then the core is told by `Raft.election_saved`. All else the shell does without waiting.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from quorate.quorum.ids import EpochOffset
from quorate.quorum.raft.control_records import Voter
from quorate.quorum.raft.election import Election
from quorate.quorum.raft.messages import Request, Response


class Role(enum.StrEnum):
    UNATTACHED = "unattached"
    PROSPECTIVE = "prospective"
    CANDIDATE = "candidate"
    FOLLOWER = "follower"
    LEADER = "leader"
    RESIGNED = "resigned"


@dataclass(frozen=True, slots=True)
class Send:
    """Answer with `Raft.response(now_ms, token, response)`, None when there is none in time."""

    voter_id: int
    token: int
    request: Request
    timeout_ms: int


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to the request that came in with `token`."""

    token: int
    response: Response


@dataclass(frozen=True, slots=True)
class Persist:
    election: Election


@dataclass(frozen=True, slots=True)
class Flush:
    """Make the log durable up to `offset`, then `Raft.flushed(now_ms, epoch, offset)`."""

    epoch: int
    offset: int


@dataclass(frozen=True, slots=True)
class Committed:
    high_watermark: int


@dataclass(frozen=True, slots=True)
class RoleChanged:
    role: Role
    epoch: int
    leader_id: int


@dataclass(frozen=True, slots=True)
class Truncated:
    """The log now ends at `offset`: what was beyond was never committed."""

    offset: int


@dataclass(frozen=True, slots=True)
class InstallSnapshot:
    """All bytes of this snapshot are received: check and freeze them, then
    `Raft.snapshot_checked(now_ms, snapshot, size_bytes)`, -1 when they are no whole snapshot."""

    snapshot: EpochOffset


@dataclass(frozen=True, slots=True)
class SnapshotInstalled:
    """The log was replaced by that snapshot, and begins where it ends; so does the state."""

    snapshot: EpochOffset


@dataclass(frozen=True, slots=True)
class VotersChanged:
    """These vote from now on, and are reached there; at kraft.version 0 the configured ones."""

    kraft_version: int
    voters: tuple[Voter, ...]


@dataclass(frozen=True, slots=True)
class LeaderFound:
    """Another node said where the leader is reached."""

    leader_id: int
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class ProbeVoter:
    """Shake hands at its address, then `Raft.voter_probed(now_ms, token, met)`."""

    token: int
    voter: Voter


@dataclass(frozen=True, slots=True)
class VoterChangeResult:
    """What became of the change of voters that was asked for with `token`."""

    token: int
    error: int
    message: str


@dataclass(frozen=True, slots=True)
class Resigned:
    """`Raft.resign` is done: the successors know, or will find out by themselves. Stop now."""


@dataclass(frozen=True, slots=True)
class CaughtUp:
    """The log of a node that had lost records holds them again, durably. Save that this node may
    vote, then call `Raft.caught_up(now_ms)`."""


@dataclass(frozen=True, slots=True)
class PeerProblem:
    """A replica was refused, or refused us, for what an operator has to mend. To be logged."""

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
