"""What every role shares: the durable election, the log's bounds, the effects, requests under way.

Invariants:

- A changed election is emitted as `Persist` before any effect that follows the change, so nothing
  that rests on it can leave the node before it is durable (R1, R21).
- A request under way belongs to the role that sent it: leaving the role forgets its token, and an
  answer with a forgotten token changes nothing (R10, R24).
- The high watermark never goes back (R16).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from quorate.quorum.ids import NO_NODE, ZERO_UUID, EpochOffset, ReplicaKey
from quorate.quorum.log.batch import BatchHeader
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.raft import effects
from quorate.quorum.raft.election import Election
from quorate.quorum.raft.errors import InvariantViolation
from quorate.quorum.raft.log_view import RaftLog, RaftSnapshots
from quorate.quorum.raft.messages import Request, Response
from quorate.quorum.raft.settings import HINT_DELAY_MAX_MS, RaftSettings
from quorate.quorum.raft.states import TRANSITIONS, State
from quorate.quorum.raft.voter_history import Membership, QuorumVoters, key_of
from quorate.quorum.raft.voter_set import VoterSet
from quorate.quorum.seams import Random

CLAIM_REPORT_INTERVAL_MS = 1000
MAX_ADDRESSES = 1000
"""Of nodes that other nodes named as leaders."""
NO_FLUSH = EpochOffset(-1, -1)
LASTING_REFUSALS = (
    ErrorCode.INCONSISTENT_CLUSTER_ID,
    ErrorCode.INVALID_VOTER_KEY,
    ErrorCode.INVALID_REQUEST,
)


CheckBatch = Callable[[memoryview, int, BatchHeader], object]
"""Raises an exception for the batch at a position of a buffer if no node could replay it."""


def _any_batch(buffer: memoryview, position: int, header: BatchHeader) -> None:
    """Accept every batch, where the log is not that of metadata (tests)."""


@dataclass(frozen=True, slots=True)
class SentRequest:
    voter_id: int
    request: Request


class Core:
    __slots__ = (
        "_dirty",
        "_emitted_election",
        "_emitted_role",
        "_next_token",
        "addresses",
        "applied_voters",
        "bootstrap_ids",
        "check_batch",
        "claim_reported_ms",
        "cluster_id",
        "configured",
        "connected",
        "durable_offset",
        "effects",
        "election",
        "high_watermark",
        "history",
        "in_flight",
        "installing",
        "last_refused_claim",
        "log",
        "lost_elections",
        "lost_log",
        "me",
        "now_ms",
        "own_voter",
        "random",
        "refused_claims",
        "refusing",
        "reported",
        "requested_flush",
        "resigned_epoch",
        "resigning",
        "settings",
        "snapshots",
        "state",
        "stopped",
        "superseded",
        "voters",
        "wall_offset_ms",
    )

    state: State
    voters: VoterSet

    def __init__(
        self,
        settings: RaftSettings,
        cluster_id: str,
        me: ReplicaKey,
        membership: Membership,
        log: RaftLog,
        snapshots: RaftSnapshots,
        election: Election,
        random: Random,
    ) -> None:
        self.settings = settings
        self.cluster_id = cluster_id
        self.me = me
        self.configured = VoterSet(membership.configured)
        self.history = membership.history
        self.applied_voters: QuorumVoters | None = None  # what `voters` was made from
        self.bootstrap_ids = membership.bootstrap_ids
        self.own_voter = membership.own_voter
        self.addresses = dict(membership.addresses)
        self.log = log
        self.snapshots = snapshots
        self.installing: EpochOffset | None = None
        self.election = election
        self.random = random
        self.now_ms = 0
        self.wall_offset_ms = 0
        latest = snapshots.latest  # only what is committed is ever in a snapshot
        self.high_watermark = max(log.start_offset, latest.offset if latest else 0)
        self.durable_offset = log.flushed_offset
        self.requested_flush = NO_FLUSH
        self.connected: set[int] = set()
        self.refusing: set[int] = set()
        self.reported: dict[int, str] = {}  # by voter id
        self.refused_claims = 0  # claims of other nodes that were refused
        self.last_refused_claim = ""
        self.claim_reported_ms: int | None = None  # when one was last reported
        self.check_batch: CheckBatch = _any_batch
        self.lost_elections = 0
        self.lost_log = False  # see `catching_up`
        self.resigned_epoch = -1  # in which the leader said that it leads no more
        self.resigning = False
        self.stopped = False
        self.superseded = False  # a later generation of this quorum was met, and no leader since
        self.effects: list[effects.Effect] = []
        self.in_flight: dict[int, SentRequest] = {}
        self._emitted_role: effects.RoleChanged | None = None
        self._dirty = True
        self._emitted_election = election
        self._next_token = 0

    @property
    def is_voter(self) -> bool:
        return self.me in self.voters

    @property
    def catching_up(self) -> bool:
        """Return True while this node must not vote, because its directory lost records that the
        node may have acknowledged (`raft/catching_up.py`)."""
        return self.lost_log

    @property
    def looks_for_leader(self) -> bool:
        """Return True if this node cannot start an election: it asks the voters for the leader."""
        return self.catching_up or not self.is_voter

    @property
    def is_electable(self) -> bool:
        """Also a voter that is removed, until that is committed: it may be the only one who has the
        record, and nobody with less can win its vote (Ongaro's thesis, 4.2.2)."""
        if self.catching_up:
            return False
        if self.is_voter:
            return True
        undecided = self.history.latest_offset >= self.high_watermark
        return undecided and any(key_of(each) == self.me for each in self.history.previous.voters)

    def count_voters(self, ids: Collection[int]) -> int:
        """How many of `ids` vote."""
        return sum(voter_id in ids for voter_id in self.voters.ids)

    @property
    def must_flush_before_fetch(self) -> bool:
        """Its fetch offset counts, or may by the time that it arrives."""
        return self.settings.may_become_voter or self.is_voter or self.catching_up

    @property
    def epoch(self) -> int:
        return self.election.epoch

    @property
    def leader_id(self) -> int:
        return self.election.leader_id

    @property
    def wall_ms(self) -> int:
        return self.now_ms + self.wall_offset_ms

    def log_end(self) -> EpochOffset:
        """(0, 0) when empty: nothing was ever led in epoch 0. Behind a snapshot an empty log ends
        in the snapshot's epoch."""
        epoch, end_offset = self.log.last_epoch, self.log.end_offset
        latest = self.snapshots.latest if epoch < 0 else None
        if latest is not None and latest.offset == end_offset:
            return latest
        return EpochOffset(max(epoch, 0), end_offset)

    # Effects

    def emit(self, effect: effects.Effect) -> None:
        if self._dirty:
            self._emit_changes()
        self.effects.append(effect)

    def _emit_changes(self) -> None:
        """Once for all that one input changed: a vote in a new epoch is one save, not two."""
        self._dirty = False
        if self.election != self._emitted_election:
            self._emitted_election = self.election
            self.effects.append(effects.Persist(self.election))
        role = effects.RoleChanged(self.state.role, self.epoch, self.leader_id)
        if role != self._emitted_role:
            self._emitted_role = role
            self.effects.append(role)

    def take_effects(self) -> list[effects.Effect]:
        if self._dirty:
            self._emit_changes()
        taken, self.effects = self.effects, []
        return taken

    def send(self, voter_id: int, request: Request, extra_ms: int = 0) -> int:
        token = self._next_token
        self._next_token += 1
        self.in_flight[token] = SentRequest(voter_id, request)
        timeout_ms = self.settings.request_timeout_ms + extra_ms
        self.emit(effects.Send(voter_id, token, request, timeout_ms))
        return token

    def reply(self, token: int, response: Response) -> None:
        self.emit(effects.Reply(token, response))

    def flush(self) -> None:
        """Ask for all of the log to be made durable, once for each (epoch, end)."""
        asked = EpochOffset(self.epoch, self.log.end_offset)
        if asked != self.requested_flush:
            self.requested_flush = asked
            self.emit(effects.Flush(asked.epoch, asked.offset))

    def raise_high_watermark(self, offset: int) -> None:
        if offset > self.high_watermark:
            self.high_watermark = offset
            self.emit(effects.Committed(offset))

    def report(self, replica_id: int, reason: str) -> None:
        """Said once, until there is something else to say about that replica."""
        if self.reported.get(replica_id) != reason:
            self.reported[replica_id] = reason
            self.emit(effects.PeerProblem(replica_id, reason))

    def refuse_claim(self, replica_id: int, claim: str) -> None:
        """Report a claim of another node that is refused, at most one in DOUBT_INTERVAL_MS."""
        self.refused_claims += 1
        self.last_refused_claim = f"node {replica_id} {claim}"
        due = (
            self.claim_reported_ms is None
            or self.now_ms - self.claim_reported_ms >= CLAIM_REPORT_INTERVAL_MS
        )
        if due:
            self.claim_reported_ms = self.now_ms
            self.emit(
                effects.PeerProblem(replica_id, f"{claim} (refused so far: {self.refused_claims})")
            )

    def report_refusal(self, voter_id: int, error: int) -> None:
        """When an answer says what no retry will mend."""
        if error in LASTING_REFUSALS:
            name = ErrorCode.of(error).name
            self.report(voter_id, f"voter {voter_id} refuses this node, {self.me}, with {name}")

    # The durable facts

    def verify_voter_key(self, replica: ReplicaKey) -> bool:
        """False when it is not the voter that its id says; pins a directory id that was unknown."""
        if self.voters.is_impostor(replica):
            known = self.voters.key(replica.id)
            self.report(
                replica.id,
                f"replica {replica} is not voter {known}: its disk was replaced or its "
                "directory.id changed, and it may have voted before; bring back the directory of "
                f"{known}, or remove that voter and add this one",
            )
            return False
        if self.voters.can_pin(replica) and self.is_voter:
            self.voters = self.configured = self.voters.pin(replica)
            self.set_election(replace(self.election, pinned=self.voters.pinned()))
        return True

    def has_address(self, node_id: int) -> bool:
        """Is it known where: does it vote, as far as this node knows, or did somebody say so?"""
        return node_id in self.voters.ids or node_id in self.addresses

    def is_me(self, replica: ReplicaKey) -> bool:
        """The receiver's key as the sender knows it: perhaps without the directory id."""
        return replica in (self.me, ReplicaKey(self.me.id, ZERO_UUID))

    def set_election(self, election: Election) -> None:
        if election != self.election:
            self.election = election
            self._dirty = True

    # Roles

    def epoch_is_open(self) -> bool:
        """No leader, and no vote that a candidate may yet win with."""
        return self.leader_id == NO_NODE and self.election.voted in (None, self.me)

    def stop(self) -> None:
        """Resigning is over; said once."""
        if not self.stopped:
            self.stopped = True
            self.emit(effects.Resigned())

    def become(
        self, state: State, epoch: int, *, voted: ReplicaKey | None, leader_id: int = NO_NODE
    ) -> None:
        old = self.state
        transition = TRANSITIONS.get((old.role, state.role))
        if transition is None or not transition.epoch.allows(self.epoch, epoch):
            raise InvariantViolation(
                f"no transition from {old.role} in epoch {self.epoch} to {state.role} in {epoch}"
            )
        if epoch == self.epoch and self.election.voted not in (None, voted):
            raise InvariantViolation(
                f"a vote for {self.election.voted} in epoch {epoch} cannot become {voted} (R4)"
            )
        self.set_election(Election(epoch, voted, leader_id, self.election.pinned))
        self.state = state
        self._dirty = True
        self.in_flight.clear()

    def election_deadline_ms(self) -> int:
        timeout_ms = self.settings.election_timeout_ms
        return self.now_ms + timeout_ms + self.random.randrange(0, timeout_ms)

    def hint_deadline_ms(self) -> int:
        """Each voter draws from a slot of its own, so that two who saw the same hint seldom ask for
        votes at the same time: with the leader dead, a tie of the others elects nobody."""
        slot_ms = HINT_DELAY_MAX_MS // len(self.voters.ids)
        rank = self.voters.ids.index(self.me.id) if self.is_voter else 0
        return self.now_ms + rank * slot_ms + self.random.randrange(0, max(1, slot_ms // 2))
