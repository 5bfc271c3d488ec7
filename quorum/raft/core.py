"""The state that all roles of one node share: the election, the voters, the log and the effects.

Invariants:

- A changed election is emitted as `Persist` before every effect that follows the change. No message
  that rests on the election can leave the node before it is durable: a crash could take a vote
  after the candidate has counted it (R1, R21 in tests/scenarios).
- A request in flight belongs to the role that sent it. When the node leaves the role, it discards
  the token. A response with a discarded token changes nothing, because it could count in another
  epoch (R10, R24).
- The high watermark never decreases, also over a change of leader (R16). It is at most the log end
  offset.
- The epoch never decreases. A vote never changes within an epoch, not even when the node steps down
  (R4).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from quorate.quorum.ids import NO_NODE, ZERO_UUID, EpochOffset, ReplicaKey
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.raft import effects
from quorate.quorum.raft.election import Election
from quorate.quorum.raft.errors import InvariantViolation
from quorate.quorum.raft.log_view import AcceptedBatches, FollowedBatches, RaftLog, RaftSnapshots
from quorate.quorum.raft.messages import Request, Response
from quorate.quorum.raft.settings import RaftSettings
from quorate.quorum.raft.states import TRANSITIONS, State
from quorate.quorum.raft.voter_history import Membership, QuorumVoters, key_of
from quorate.quorum.raft.voter_set import VoterSet
from quorate.quorum.seams import Random

CLAIM_REPORT_INTERVAL_MS = 1000
"""The minimum time between two log lines about refused claims."""
MAX_ADDRESSES = 1000
"""The maximum number of node addresses that this node remembers."""
MAX_REPORTED = 1000
"""The maximum number of replicas whose last problem this node remembers."""
NO_FLUSH = EpochOffset(-1, -1)
"""Means that no flush was requested for the present log."""
LASTING_REFUSALS = (
    ErrorCode.INCONSISTENT_CLUSTER_ID,
    ErrorCode.INVALID_VOTER_KEY,
    ErrorCode.INVALID_REQUEST,
)
"""The errors that a retry does not remove, so an operator has to act."""


@dataclass(frozen=True, slots=True)
class SentRequest:
    """A request in flight, with its receiver."""

    voter_id: int
    request: Request


class Core:
    """The shared state of one `Raft`. The modules of this package read and change it directly.

    `now_ms` is the monotonic time of the current input. `durable_offset` is the offset up to which
    this node has flushed. `connected` holds the voters with an open link, `refusing` those whose
    port refused the last connection.
    """

    __slots__ = (
        "_dirty",
        "_emitted_election",
        "_emitted_role",
        "_next_token",
        "addresses",
        "applied_voters",
        "bootstrap_ids",
        "claim_reported_ms",
        "cluster_id",
        "configured",
        "connected",
        "durable_offset",
        "effects",
        "election",
        "followed",
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
        self.applied_voters: QuorumVoters | None = None  # the source of `voters`
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
        latest = snapshots.latest  # a snapshot holds committed records only
        self.high_watermark = max(log.start_offset, latest.offset if latest else 0)
        self.durable_offset = log.flushed_offset
        self.requested_flush = NO_FLUSH
        self.connected: set[int] = set()
        self.refusing: set[int] = set()
        self.reported: dict[int, str] = {}  # last problem, by replica id
        self.refused_claims = 0  # count since the start
        self.last_refused_claim = ""
        self.claim_reported_ms: int | None = None  # time of the last report
        self.followed: FollowedBatches = AcceptedBatches()
        self.lost_elections = 0
        self.lost_log = False  # see catching_up.py
        self.resigned_epoch = -1  # epoch whose leader resigned
        self.resigning = False
        self.stopped = False
        self.superseded = False  # see Raft.superseded
        self.effects: list[effects.Effect] = []
        self.in_flight: dict[int, SentRequest] = {}
        self._emitted_role: effects.RoleChanged | None = None
        self._dirty = True
        self._emitted_election = election
        self._next_token = 0

    @property
    def is_voter(self) -> bool:
        """Return True if this node is in the current voter set."""
        return self.me in self.voters

    @property
    def catching_up(self) -> bool:
        """Return True while this node must not vote, because its directory lost records that the
        node may have acknowledged (catching_up.py)."""
        return self.lost_log

    @property
    def looks_for_leader(self) -> bool:
        """Return True if this node is not a voter, or is catching up. Without a known leader, it
        asks the voters and the bootstrap servers for one."""
        return self.catching_up or not self.is_voter

    @property
    def is_electable(self) -> bool:
        """Return True if this node may start an election: a voter that is not catching up.

        A voter whose removal is not committed yet may do so, too. It may be the only node that has
        the record of the removal, and no voter with a shorter log can win its vote (Ongaro's
        thesis, 4.2.2).
        """
        if self.catching_up:
            return False
        if self.is_voter:
            return True
        undecided = self.history.latest_offset >= self.high_watermark
        return undecided and any(key_of(each) == self.me for each in self.history.previous.voters)

    def count_voters(self, ids: Collection[int]) -> int:
        """Return the number of voters among `ids`."""
        return sum(voter_id in ids for voter_id in self.voters.ids)

    @property
    def must_flush_before_fetch(self) -> bool:
        """Return True if the leader may count this node's fetch offset when the fetch arrives."""
        return self.settings.may_become_voter or self.is_voter or self.catching_up

    @property
    def epoch(self) -> int:
        """The current epoch."""
        return self.election.epoch

    @property
    def leader_id(self) -> int:
        """The leader of the current epoch, or NO_NODE if this node knows none."""
        return self.election.leader_id

    @property
    def wall_ms(self) -> int:
        """The wall-clock time of the current input."""
        return self.now_ms + self.wall_offset_ms

    def log_end(self) -> EpochOffset:
        """Return the last epoch and the end offset of the log.

        The epoch of an empty log is that of the snapshot that it starts from, or 0 without one.
        """
        epoch, end_offset = self.log.last_epoch, self.log.end_offset
        latest = self.snapshots.latest if epoch < 0 else None
        if latest is not None and latest.offset == end_offset:
            return latest
        return EpochOffset(max(epoch, 0), end_offset)

    # Effects

    def emit(self, effect: effects.Effect) -> None:
        """Append an effect. Emit a changed election and role first."""
        if self._dirty:
            self._emit_changes()
        self.effects.append(effect)

    def _emit_changes(self) -> None:
        """Emit `Persist` and `RoleChanged` if the election or the role has changed.

        One input may change the election twice. It is saved once, in its last state.
        """
        self._dirty = False
        if self.election != self._emitted_election:
            assert self.election.epoch >= self._emitted_election.epoch, "the epoch decreased"
            self._emitted_election = self.election
            self.effects.append(effects.Persist(self.election))
        role = effects.RoleChanged(self.state.role, self.epoch, self.leader_id)
        if role != self._emitted_role:
            self._emitted_role = role
            self.effects.append(role)

    def take_effects(self) -> list[effects.Effect]:
        """Return the effects since the last call, and remove them."""
        if self._dirty:
            self._emit_changes()
        taken, self.effects = self.effects, []
        return taken

    def send(self, voter_id: int, request: Request, extra_ms: int = 0) -> int:
        """Send a request. Return its token, which names the response. The request times out after
        the configured time and `extra_ms`."""
        token = self._next_token
        self._next_token += 1
        self.in_flight[token] = SentRequest(voter_id, request)
        timeout_ms = self.settings.request_timeout_ms + extra_ms
        self.emit(effects.Send(voter_id, token, request, timeout_ms))
        return token

    def reply(self, token: int, response: Response) -> None:
        """Respond to the request with this token."""
        self.emit(effects.Reply(token, response))

    def flush(self) -> None:
        """Request a flush of the whole log, once for each (epoch, log end offset)."""
        asked = EpochOffset(self.epoch, self.log.end_offset)
        if asked != self.requested_flush:
            self.requested_flush = asked
            self.emit(effects.Flush(asked.epoch, asked.offset))

    def raise_high_watermark(self, offset: int) -> None:
        """Raise the high watermark to `offset`, if that is higher, and emit `Committed`."""
        assert offset <= self.log.end_offset, f"{offset} is beyond the log, {self.log.end_offset}"
        if offset > self.high_watermark:
            self.high_watermark = offset
            self.emit(effects.Committed(offset))

    def report(self, replica_id: int, reason: str) -> None:
        """Emit `PeerProblem`, unless the last problem of this replica was the same."""
        if self.reported.get(replica_id) != reason:
            if len(self.reported) >= MAX_REPORTED:  # an observer may have any id
                self.reported.clear()
            self.reported[replica_id] = reason
            self.emit(effects.PeerProblem(replica_id, reason))

    def refuse_claim(self, replica_id: int, claim: str) -> None:
        """Count a refused claim of another node. Report at most one in CLAIM_REPORT_INTERVAL_MS."""
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
        """Report that a voter refuses this node with an error that no retry removes."""
        if error in LASTING_REFUSALS:
            name = ErrorCode.of(error).name
            self.report(
                voter_id,
                f"voter {voter_id} refuses this node, {self.me}, with {name}. Check the cluster "
                "id and the voters of both nodes",
            )

    # The durable facts

    def verify_voter_key(self, replica: ReplicaKey) -> bool:
        """Return False if `replica` has the id of a voter but another directory id. Report that.

        If the directory id of that voter was unknown and this node is a voter, adopt it from
        `replica`. A replica with another id than any voter passes.
        """
        if self.voters.is_impostor(replica):
            known = self.voters.key(replica.id)
            self.report(
                replica.id,
                f"replica {replica} is not voter {known}: its disk was replaced or its "
                "directory.id was changed. It may have voted before, so it is only an observer. "
                f"Restore the directory of {known}, or remove that voter and add this replica "
                "(remove-controller and add-controller, at kraft.version 1)",
            )
            return False
        if self.voters.can_pin(replica) and self.is_voter:
            self.voters = self.configured = self.voters.pin(replica)
            self.set_election(replace(self.election, pinned=self.voters.pinned()))
        return True

    def has_address(self, node_id: int) -> bool:
        """Return True if this node can reach the node: a voter, or a node whose address it knows
        from the configuration or from others."""
        return node_id in self.voters.ids or node_id in self.addresses

    def is_me(self, replica: ReplicaKey) -> bool:
        """Return True if `replica` names this node. The sender may not know the directory id."""
        return replica in (self.me, ReplicaKey(self.me.id, ZERO_UUID))

    def set_election(self, election: Election) -> None:
        """Replace the election. It is emitted before the next effect."""
        if election != self.election:
            self.election = election
            self._dirty = True

    # Roles

    def epoch_is_open(self) -> bool:
        """Return True if this epoch has no known leader and this node did not vote for another
        node."""
        return self.leader_id == NO_NODE and self.election.voted in (None, self.me)

    def stop(self) -> None:
        """Emit `Resigned`, once. The node then stops."""
        if not self.stopped:
            self.stopped = True
            self.emit(effects.Resigned())

    def become(
        self, state: State, epoch: int, *, voted: ReplicaKey | None, leader_id: int = NO_NODE
    ) -> None:
        """Change role, epoch, vote and leader, and discard all requests in flight.

        Raise InvariantViolation if TRANSITIONS does not allow the change, or if it would replace a
        vote within an epoch.
        """
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
        known = self.leader_id if epoch == self.epoch else NO_NODE
        assert known in (NO_NODE, leader_id), f"two leaders of epoch {epoch}: {known}, {leader_id}"
        leads = state.role in (effects.Role.LEADER, effects.Role.RESIGNED)
        assert leads == (leader_id == self.me.id), f"{state.role} of leader {leader_id}"
        self.set_election(Election(epoch, voted, leader_id, self.election.pinned))
        self.state = state
        self._dirty = True
        self.in_flight.clear()
