"""The six roles and the transitions between them (KIP-595, 853, 996), as data.

Epoch, vote and known leader are not here: they are the durable `Election`. A role holds only
its own timers and bookkeeping, and all of it is gone when the role is left.
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


@dataclass(slots=True)
class FetchState:
    """At most one fetch is under way; the next one leaves at `retry_ms` or later."""

    token: int | None = None
    retry_ms: int = 0
    is_first: bool = True  # no answer from this leader yet
    failed: bool = False  # an observer then asks any voter: the leader may be another by now
    snapshot: EpochOffset | None = None  # being fetched instead of the log
    position: int = 0  # how much of it is here
    size_bytes: int = 0  # of all of it, as its first chunk says; 0 before


@dataclass(slots=True, kw_only=True)
class Unattached:
    """Knows no leader; may have voted. An observer has no deadline but asks for the leader."""

    role: ClassVar[Role] = Role.UNATTACHED
    deadline_ms: int | None
    hinted: bool = False
    fetching: FetchState = field(default_factory=FetchState)


@dataclass(slots=True, kw_only=True)
class PendingRequests:
    """Voters are asked, each until it answers or `deadline_ms`."""

    deadline_ms: int
    awaiting: set[int] = field(default_factory=set)  # whose answer is awaited
    retry_ms: dict[int, int] = field(default_factory=dict)  # of those who gave none

    def take_due(self, wanted: Iterable[int], now_ms: int) -> list[int]:
        """Who of `wanted` is to be asked now, and counts as asked; nobody else is asked again."""
        wanted = [each for each in wanted if each not in self.awaiting]
        due = [each for each in wanted if self.retry_ms.get(each, now_ms) <= now_ms]
        self.retry_ms = {each: self.retry_ms[each] for each in wanted if each not in due}
        self.awaiting.update(due)
        return due


@dataclass(slots=True, kw_only=True)
class VoteRound(PendingRequests):
    """One (pre-)vote: who granted, who refused. Ids, not counts (R5)."""

    granted: set[int] = field(default_factory=set)
    rejected: set[int] = field(default_factory=set)


@dataclass(slots=True, kw_only=True)
class Prospective(VoteRound):
    """Asks whether it could win, without raising anybody's epoch (KIP-996)."""

    role: ClassVar[Role] = Role.PROSPECTIVE


@dataclass(slots=True, kw_only=True)
class Candidate(VoteRound):
    role: ClassVar[Role] = Role.CANDIDATE
    lost: bool = False  # `deadline_ms` is then the end of the backoff


@dataclass(slots=True, kw_only=True)
class Follower:
    role: ClassVar[Role] = Role.FOLLOWER
    leader_id: int
    deadline_ms: int | None  # of the fetch timeout; None for an observer
    has_fetched: bool = False  # then pre-votes are refused: this leader works (KIP-996)
    last_response_ms: int = 0  # when it answered last; an observer has no deadline to tell
    leader_gone: bool = False  # evidence (idea 9): the leader resigned or its process is dead
    leader_high_watermark: int = 0  # the high watermark in the leader's latest answer
    caught_up: bool = False  # `CaughtUp` is emitted, and not yet saved
    next_update_ms: int = (
        0  # not before, whether the set of voters has this node right is looked at
    )
    fetching: FetchState = field(default_factory=FetchState)


@dataclass(slots=True)
class DelayedFetch:
    """A fetch that waits at the leader for data or for a higher high watermark."""

    token: int
    offset: int
    high_watermark: int
    max_bytes: int
    deadline_ms: int


@dataclass(slots=True)
class Progress:
    """What the leader knows of one replica."""

    key: ReplicaKey
    is_voter: bool
    end_offset: int = NO_OFFSET  # a voter has flushed all below; only grows within an epoch
    last_fetch_ms: int = NOT_YET_MS
    previous_fetch_ms: int = NOT_YET_MS
    last_fetch_log_end: int = 0  # the leader's log end at the fetch before
    caught_up_ms: int = NOT_YET_MS
    knows_leader: bool = False
    delayed_fetch: DelayedFetch | None = None


@dataclass(slots=True)
class ServedSlice:
    """The slice of the log that was appended or served last, and the answer that carried it."""

    offset: int
    end: int
    records: Buffer
    response: FetchResponse | None = None


@dataclass(slots=True)
class VoterChange:
    """The one change of the voters that is under way: first the voter is met, then its record is
    at `offset`."""

    token: int  # who asked
    voter: Voter | None
    offset: int | None = None


@dataclass(slots=True, kw_only=True)
class Leader:
    role: ClassVar[Role] = Role.LEADER
    epoch_start_offset: int
    voters: dict[int, Progress]  # the other voters, by id
    check_quorum_ms: int | None  # None when this node alone is a majority
    begin_epoch_ms: int | None  # when to tell those who do not know yet; None when all do
    observers: dict[ReplicaKey, Progress] = field(default_factory=dict)
    fetched: set[int] = field(default_factory=set)
    delayed_fetch_ms: int | None = None  # no parked fetch ends before this
    served_slice: ServedSlice | None = None
    change: VoterChange | None = None


@dataclass(slots=True, kw_only=True)
class ResignedLeader(PendingRequests):
    """Led this epoch, in this life or before a restart; never again in this epoch (KAFKA-10527)."""

    role: ClassVar[Role] = Role.RESIGNED
    preferred: tuple[ReplicaKey, ...]
    unacked: set[int]


State = Unattached | Prospective | Candidate | Follower | Leader | ResignedLeader


class EpochStep(enum.Enum):
    SAME = "same"
    NEXT = "next"
    HIGHER = "higher"
    SAME_OR_HIGHER = "same or higher"

    def allows(self, old: int, new: int) -> bool:
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
    (Role.FOLLOWER, Role.UNATTACHED): Transition(EpochStep.HIGHER, "it learned of the epoch"),
    (Role.FOLLOWER, Role.PROSPECTIVE): Transition(EpochStep.SAME, "fetch timeout or hint"),
    (Role.FOLLOWER, Role.FOLLOWER): Transition(EpochStep.HIGHER, "another leader"),
}
"""The allowed changes of role. `Core.become` refuses every other one with InvariantViolation."""
