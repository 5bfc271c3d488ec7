"""The six roles of a node and the allowed transitions between them (KIP-595, KIP-853, KIP-996).

The epoch, the vote and the known leader are not part of a role. They are the durable `Election`. A
role holds only timers and bookkeeping, which are discarded when the node leaves the role. Times are
monotonic milliseconds.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

from quorate.quorum.ids import EpochOffset, ReplicaKey
from quorate.quorum.raft.control_records import Voter
from quorate.quorum.raft.effects import Role
from quorate.quorum.raft.messages import FetchResponse
from quorate.quorum.raft.voter_set import NO_OFFSET
from quorate.quorum.seams import Buffer

NOT_YET_MS = -1
"""The time of an event that has not happened yet."""


@dataclass(slots=True)
class FetchState:
    """The state of the fetches of one role. Invariant: at most one is in flight.

    `retry_ms` is the earliest time of the next fetch. `snapshot` is set while the replica fetches a
    snapshot instead of the log.
    """

    token: int | None = None
    retry_ms: int = 0
    is_first: bool = True  # this leader has not responded yet
    failed: bool = False  # an observer then asks any voter, because the leader may have changed
    snapshot: EpochOffset | None = None  # in place of the log
    position: int = 0  # bytes received
    size_bytes: int = 0  # of the whole snapshot, from its first chunk; 0 before


@dataclass(slots=True, kw_only=True)
class Unattached:
    """The role of a node that knows no leader of its epoch. It may have voted.

    A node that cannot start an election has no deadline. It asks the voters for the leader instead.
    """

    role: ClassVar[Role] = Role.UNATTACHED
    deadline_ms: int | None
    hinted: bool = False  # links to a majority have shortened the deadline
    fetching: FetchState = field(default_factory=FetchState)


@dataclass(slots=True, kw_only=True)
class PendingRequests:
    """Requests to several voters, each repeated until the voter responds or `deadline_ms` has
    passed."""

    deadline_ms: int
    awaiting: set[int] = field(default_factory=set)  # voters whose response is awaited
    retry_ms: dict[int, int] = field(default_factory=dict)  # of voters that did not respond

    def take_due(self, wanted: Iterable[int], now_ms: int) -> list[int]:
        """Return the voters of `wanted` whose request is due, and mark them as awaited.

        A voter whose response is awaited is not returned. Retry times of voters outside of `wanted`
        are discarded.
        """
        wanted = [each for each in wanted if each not in self.awaiting]
        due = [each for each in wanted if self.retry_ms.get(each, now_ms) <= now_ms]
        self.retry_ms = {each: self.retry_ms[each] for each in wanted if each not in due}
        self.awaiting.update(due)
        return due


@dataclass(slots=True, kw_only=True)
class VoteRound(PendingRequests):
    """The responses to one vote or pre-vote. It keeps ids instead of counts, because a voter may
    respond twice (R5 in tests/scenarios)."""

    granted: set[int] = field(default_factory=set)
    rejected: set[int] = field(default_factory=set)


@dataclass(slots=True, kw_only=True)
class Prospective(VoteRound):
    """The role of a voter that asks for pre-votes. It stays in its epoch (KIP-996)."""

    role: ClassVar[Role] = Role.PROSPECTIVE


@dataclass(slots=True, kw_only=True)
class Candidate(VoteRound):
    """The role of a voter that asks for votes in a new epoch. It has voted for itself."""

    role: ClassVar[Role] = Role.CANDIDATE
    lost: bool = False  # if True, `deadline_ms` is the end of the backoff


@dataclass(slots=True, kw_only=True)
class Follower:
    """The role of a node that fetches from the leader of its epoch. Observers have it, too."""

    role: ClassVar[Role] = Role.FOLLOWER
    leader_id: int
    deadline_ms: int | None  # end of the fetch timeout; None if it cannot start an election
    has_fetched: bool = False  # the leader has responded; most pre-votes are refused (KIP-996)
    last_response_ms: int = 0  # time of the leader's last response
    leader_gone: bool = False  # the leader resigned, or its process is dead
    leader_high_watermark: int = 0  # in the leader's last response
    caught_up: bool = False  # `CaughtUp` was emitted
    replaced_voter: ReplicaKey | None = None  # in the leader's last response
    next_update_ms: int = 0  # earliest time of the next UpdateVoter request
    fetching: FetchState = field(default_factory=FetchState)


@dataclass(slots=True)
class DelayedFetch:
    """A fetch that waits at the leader for records, or for a high watermark above
    `high_watermark`."""

    token: int
    offset: int
    high_watermark: int
    max_bytes: int
    deadline_ms: int


@dataclass(slots=True)
class Progress:
    """The leader's record of one replica. Kafka calls it ReplicaState.

    Invariant: `end_offset` is the offset up to which a voter has flushed. It never shrinks within
    an epoch, unless the voter reports that it lost its log. An observer need not have flushed.
    """

    key: ReplicaKey
    is_voter: bool
    end_offset: int = NO_OFFSET  # acknowledged by the last fetch
    last_fetch_ms: int = NOT_YET_MS
    previous_fetch_ms: int = NOT_YET_MS
    last_fetch_log_end: int = 0  # the leader's log end offset at `previous_fetch_ms`
    caught_up_ms: int = NOT_YET_MS
    knows_leader: bool = False
    delayed_fetch: DelayedFetch | None = None


@dataclass(slots=True)
class ServedSlice:
    """The records that the leader appended or served last, and the response that carried them.

    Most followers ask for the same records, so the leader reads and wraps them once.
    """

    offset: int
    end: int
    records: Buffer
    response: FetchResponse | None = None


@dataclass(slots=True)
class VoterChange:
    """The pending change of the voters. There is at most one.

    While a new voter is probed, `voter` is set and `offset` is None. Afterwards `voter` is None and
    `offset` is that of the appended VotersRecord.
    """

    token: int  # of the request; names it in VoterChangeResult
    voter: Voter | None
    offset: int | None = None


@dataclass(slots=True, kw_only=True)
class Leader:
    """The role of the leader of this epoch.

    `voters` holds the other voters by id. Invariant: nothing of an older epoch is committed before
    a record at or above `epoch_start_offset` is.
    """

    role: ClassVar[Role] = Role.LEADER
    epoch_start_offset: int
    voters: dict[int, Progress]  # the other voters
    check_quorum_ms: int | None  # None if this node alone is a majority
    begin_epoch_ms: int | None  # next BeginQuorumEpoch; None if all voters know
    observers: dict[ReplicaKey, Progress] = field(default_factory=dict)
    fetched: set[int] = field(default_factory=set)  # voters, since the last majority of fetches
    delayed_fetch_ms: int | None = None  # no delayed fetch expires earlier
    served_slice: ServedSlice | None = None
    change: VoterChange | None = None


@dataclass(slots=True, kw_only=True)
class ResignedLeader(PendingRequests):
    """The role of a node that led this epoch, before or after a restart.

    Invariant: it never leads the same epoch again, because it may have lost records that other
    voters have acknowledged (KAFKA-10527).
    """

    role: ClassVar[Role] = Role.RESIGNED
    preferred: tuple[ReplicaKey, ...]  # the voters, longest log first; empty after a restart
    unacked: set[int]  # voters that may not know of the resignation


State = Unattached | Prospective | Candidate | Follower | Leader | ResignedLeader


class EpochStep(enum.Enum):
    """The epoch of the new role, compared with that of the old one."""

    SAME = "same"
    NEXT = "next"
    HIGHER = "higher"
    SAME_OR_HIGHER = "same or higher"

    def allows(self, old: int, new: int) -> bool:
        """Return True if a transition may change the epoch from `old` to `new`."""
        match self:
            case EpochStep.SAME:
                return new == old
            case EpochStep.NEXT:
                return new == old + 1
            case EpochStep.HIGHER:
                return new > old
            case EpochStep.SAME_OR_HIGHER:
                return new >= old


class Transition(NamedTuple):
    """One allowed change of role: its effect on the epoch, and its reasons, by which the state
    diagram in docs/protocol/elections.md is labelled."""

    epoch: EpochStep
    when: str


FIRST_ROLES: dict[Role, str] = {
    Role.UNATTACHED: "restart",
    Role.FOLLOWER: "restart, leader known",
    Role.RESIGNED: "restart of a leader",
}
"""The roles in which a node may start, with the reason of each."""

TRANSITIONS: dict[tuple[Role, Role], Transition] = {
    (Role.UNATTACHED, Role.UNATTACHED): Transition(
        EpochStep.SAME_OR_HIGHER, "it voted, or learned of the epoch"
    ),
    (Role.UNATTACHED, Role.PROSPECTIVE): Transition(EpochStep.SAME, "election timeout or hint"),
    (Role.UNATTACHED, Role.FOLLOWER): Transition(EpochStep.SAME_OR_HIGHER, "leader known"),
    (Role.PROSPECTIVE, Role.UNATTACHED): Transition(
        EpochStep.SAME_OR_HIGHER, "it voted, lost the pre-vote, or learned of the epoch"
    ),
    (Role.PROSPECTIVE, Role.CANDIDATE): Transition(EpochStep.NEXT, "majority of pre-votes"),
    (Role.PROSPECTIVE, Role.FOLLOWER): Transition(
        EpochStep.SAME_OR_HIGHER,
        "it lost the pre-vote, or learned of another leader",
    ),
    (Role.CANDIDATE, Role.UNATTACHED): Transition(EpochStep.HIGHER, "it learned of the epoch"),
    (Role.CANDIDATE, Role.PROSPECTIVE): Transition(
        EpochStep.SAME, "election timeout, or backoff over"
    ),
    (Role.CANDIDATE, Role.FOLLOWER): Transition(EpochStep.SAME_OR_HIGHER, "another leader"),
    (Role.CANDIDATE, Role.LEADER): Transition(EpochStep.SAME, "majority of votes"),
    (Role.LEADER, Role.UNATTACHED): Transition(EpochStep.HIGHER, "it learned of the epoch"),
    (Role.LEADER, Role.FOLLOWER): Transition(EpochStep.HIGHER, "another leader"),
    (Role.LEADER, Role.RESIGNED): Transition(EpochStep.SAME, "check quorum, shutdown or removal"),
    (Role.RESIGNED, Role.UNATTACHED): Transition(
        EpochStep.HIGHER, "it learned of the epoch, or election timeout"
    ),
    (Role.RESIGNED, Role.FOLLOWER): Transition(EpochStep.HIGHER, "another leader"),
    (Role.FOLLOWER, Role.UNATTACHED): Transition(
        EpochStep.SAME_OR_HIGHER,
        "it learned of the epoch, or of a voter that leads instead of a node that never responded",
    ),
    (Role.FOLLOWER, Role.PROSPECTIVE): Transition(EpochStep.SAME, "fetch timeout or hint"),
    (Role.FOLLOWER, Role.FOLLOWER): Transition(EpochStep.HIGHER, "another leader"),
}
"""The allowed changes of role. `Core.become` refuses every other one with InvariantViolation."""
