"""The consensus core of one node, voter or observer: messages and time in, effects out.

Almost every input first changes the state, and then lets the current role do everything that is
due. The core is deterministic. It has no clock. It reads and writes only the log and the snapshots.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from quorate.quorum.ids import NO_NODE, EpochOffset, ReplicaKey
from quorate.quorum.raft import (
    catching_up,
    effects,
    follower,
    high_watermark,
    leader,
    leader_news,
    resignation,
    snapshots,
    vote,
    voter_changes,
)
from quorate.quorum.raft.control_records import Voter
from quorate.quorum.raft.core import Core
from quorate.quorum.raft.description import QuorumDescription, describe
from quorate.quorum.raft.effects import Effect, Role
from quorate.quorum.raft.election import Election
from quorate.quorum.raft.election_timers import hint_deadline_ms
from quorate.quorum.raft.log_view import FollowedBatches, RaftLog, RaftSnapshots
from quorate.quorum.raft.membership import replaced_voter
from quorate.quorum.raft.messages import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    FetchRequest,
    FetchSnapshotRequest,
    Request,
    Response,
    UpdateVoterRequest,
    VoteRequest,
)
from quorate.quorum.raft.settings import RaftSettings
from quorate.quorum.raft.start import start
from quorate.quorum.raft.states import (
    Follower,
    Leader,
    Prospective,
    ResignedLeader,
    Unattached,
)
from quorate.quorum.raft.transitions import become_follower
from quorate.quorum.raft.voter_history import STATIC_VOTERS, Membership, QuorumVoters
from quorate.quorum.seams import Random

ROLE_STEPS: dict[Role, Callable[..., None]] = {
    Role.UNATTACHED: follower.step_unattached,
    Role.PROSPECTIVE: vote.step_prospective,
    Role.CANDIDATE: vote.step_candidate,
    Role.FOLLOWER: follower.step_follower,
    Role.LEADER: leader.step_leader,
    Role.RESIGNED: resignation.step_resigned,
}

REQUESTS: dict[type[Request], Callable[..., None]] = {
    VoteRequest: vote.on_vote_request,
    BeginQuorumEpochRequest: leader_news.on_begin_quorum_epoch,
    EndQuorumEpochRequest: leader_news.on_end_quorum_epoch,
    FetchRequest: leader.on_fetch,
    FetchSnapshotRequest: snapshots.on_fetch_snapshot,
    UpdateVoterRequest: voter_changes.on_update_voter,
}

RESPONSES: dict[type[Request], Callable[..., None]] = {
    VoteRequest: vote.on_vote_response,
    BeginQuorumEpochRequest: leader.on_begin_quorum_epoch_response,
    EndQuorumEpochRequest: resignation.on_end_quorum_epoch_response,
    FetchRequest: follower.on_fetch_response,
    FetchSnapshotRequest: follower.on_fetch_snapshot_response,
    UpdateVoterRequest: follower.on_update_voter_response,
}


def earliest(first_ms: int | None, *others_ms: int | None) -> int | None:
    """Return the smallest of the times, or None if all are None."""
    for each in others_ms:
        if each is not None and (first_ms is None or each < first_ms):
            first_ms = each
    return first_ms


class Raft:
    """The consensus core of one node. `MetadataReplica` owns it and calls it without concurrency.

    The caller carries out the effects of `take_effects` in order after the constructor and after
    each input, and calls `tick` at `deadline_ms`. Times are monotonic ms; `wall_ms` is Unix time.
    An input that raises may leave the state half changed, so the node must stop, except if `append`
    raises NotLeader or BatchTooLarge. No input waits for a flush: that is an effect.
    """

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
        now_ms: int,
        wall_ms: int,
        *,
        lost_log: bool = False,
    ) -> None:
        """Start in the role that the election file and the log determine (start.py).

        `lost_log` means that this node's directory lost records or votes (catching_up.py).
        """
        core = Core(settings, cluster_id, me, membership, log, snapshots, election, random)
        core.now_ms = now_ms
        core.wall_offset_ms = wall_ms - now_ms
        core.lost_log = lost_log
        self._core = core
        start(core)
        self._step()

    # Inputs

    def tick(self, now_ms: int) -> None:
        """Do everything that is due at `now_ms`."""
        self._core.now_ms = now_ms
        self._step()

    def request(self, now_ms: int, token: int, message: Request) -> None:
        """Handle a request of another node. A `Reply` effect with `token` responds to it, now or
        later."""
        self._core.now_ms = now_ms
        REQUESTS[type(message)](self._core, token, message)
        self._step()

    def response(self, now_ms: int, token: int, message: Response | None) -> None:
        """Handle the response to a `Send`, or None if there was no response in time. Ignore a token
        that was discarded."""
        core = self._core
        core.now_ms = now_ms
        asked = core.in_flight.pop(token, None)
        if asked is not None:
            RESPONSES[type(asked.request)](core, asked.voter_id, asked.request, message)
            self._step()

    def append(self, now_ms: int, wall_ms: int, values: Sequence[bytes]) -> int:
        """Append `values` as one batch and return the offset of the last one.

        Raise NotLeader if this node does not lead, and BatchTooLarge if the batch exceeds its
        bound. The records are not durable yet. They are committed later, or never.
        """
        core = self._core
        core.now_ms = now_ms
        core.wall_offset_ms = wall_ms - now_ms
        return leader.append(core, wall_ms, values)

    def election_saved(self, election: Election) -> None:
        """Continue after a `Persist`. A candidate then counts its vote for itself."""
        vote.vote_saved(self._core, election.epoch)
        self._step()

    def flushed(self, now_ms: int, epoch: int, offset: int) -> None:
        """Note that a flush requested in `epoch` has made the log durable up to `offset`.

        A flush of an older epoch is ignored, because the log may have been truncated and have grown
        again since (R22 in tests/scenarios).
        """
        core = self._core
        core.now_ms = now_ms
        if epoch != core.epoch:
            return
        core.durable_offset = max(core.durable_offset, min(offset, core.log.end_offset))
        assert core.durable_offset <= core.log.end_offset, "more is durable than the log has"
        if isinstance(core.state, Leader):
            high_watermark.advance(core, core.state)
        self._step()

    def caught_up(self, now_ms: int) -> None:
        """Let this node vote. The shell has saved that the node has caught up."""
        core = self._core
        core.now_ms = now_ms
        catching_up.end(core)
        self._step()

    def snapshot_checked(
        self,
        now_ms: int,
        snapshot: EpochOffset,
        size_bytes: int,
        quorum: QuorumVoters = STATIC_VOTERS,
    ) -> None:
        """Continue after an `InstallSnapshot`.

        `size_bytes` is the size of the snapshot, which is durable now, or -1 if the received bytes
        were not a whole snapshot. `quorum` holds the voters that the snapshot names.
        """
        core = self._core
        core.now_ms = now_ms
        snapshots.on_checked(core, snapshot, size_bytes, quorum)
        self._step()

    def add_voter(self, now_ms: int, token: int, voter: Voter) -> None:
        """Add a voter. `VoterChangeResult` reports the outcome. The voter is probed first
        (`ProbeVoter`)."""
        self._change_voters(now_ms, token, voter_changes.add, voter)

    def voter_probed(self, now_ms: int, token: int, met: bool) -> None:
        """Continue after a `ProbeVoter`. `met` is True if that replica answered at its address."""
        self._change_voters(now_ms, token, voter_changes.voter_probed, met)

    def remove_voter(self, now_ms: int, token: int, voter: ReplicaKey) -> None:
        """Remove a voter. `VoterChangeResult` reports the outcome."""
        self._change_voters(now_ms, token, voter_changes.remove, voter)

    def upgrade(self, now_ms: int, token: int, level: int, configured: Sequence[Voter]) -> None:
        """Upgrade kraft.version to `level`. `VoterChangeResult` reports the outcome.

        `configured` describes the voters of controller.quorum.voters.
        """
        self._change_voters(now_ms, token, voter_changes.upgrade, level, configured)

    def _change_voters(
        self, now_ms: int, token: int, rule: Callable[..., None], *arguments: object
    ) -> None:
        core = self._core
        core.now_ms = now_ms
        try:
            rule(core, token, *arguments)
        except voter_changes.VoterChangeRefused as refused:
            core.emit(effects.VoterChangeResult(token, refused.error, str(refused)))
        self._step()

    def voter_connected(self, now_ms: int, voter: ReplicaKey) -> None:
        """Note that a link to `voter` is open, and that its handshake named this directory id.

        Ignore a voter's id with another directory id. A link to the leader withdraws the evidence
        that it is dead. With links to a majority, a voter that knows no leader and has not voted
        for another node campaigns soon, not at its election timeout (if `hints` is set).
        """
        core = self._core
        core.now_ms = now_ms
        if not core.verify_voter_key(voter):
            return
        core.connected.add(voter.id)
        core.refusing.discard(voter.id)
        state = core.state
        leads = core.leader_id == voter.id and core.resigned_epoch != core.epoch
        if isinstance(state, Prospective) and leads:
            become_follower(core, core.epoch, voter.id)  # the leader is alive
        elif isinstance(state, Follower) and leads:
            state.leader_gone = False
        elif isinstance(state, Unattached) and state.deadline_ms is not None:
            enough = len(core.connected | {core.me.id}) >= core.voters.majority
            if core.settings.hints and enough and not state.hinted and core.epoch_is_open():
                state.hinted = True
                state.deadline_ms = min(state.deadline_ms, hint_deadline_ms(core))
        self._step()

    def link_lost(self, now_ms: int, voter_id: int) -> None:
        """Note that the link to this voter is closed."""
        self._core.now_ms = now_ms
        self._core.connected.discard(voter_id)

    def link_refused(self, now_ms: int, voter_id: int) -> None:
        """Note that the voter's port refuses connections, which is evidence that its process is
        dead. Ignore it while a link to the voter is open, or if `hints` is not set."""
        core = self._core
        core.now_ms = now_ms
        if core.settings.hints and voter_id not in core.connected:
            core.refusing.add(voter_id)
            leader_news.on_leader_port_refused(core, voter_id)
            self._step()

    def follow_batches(self, followed: FollowedBatches) -> None:
        """From now on, append a leader's batches only if `followed` accepts all of them. Control
        batches are checked in another way (record_checks.py)."""
        self._core.followed = followed

    def superseded(self) -> None:
        """Note that this node has met a later generation of its quorum.

        Do nothing if this node leads, or follows a leader that has responded and is not known to
        have gone, because this quorum lives. Otherwise the quorum must not come back, so this voter
        grants and asks for no vote until a leader of its quorum responds to it.
        """
        state = self._core.state
        follows = isinstance(state, Follower) and state.has_fetched and not state.leader_gone
        if not (follows or isinstance(state, Leader)):
            self._core.superseded = True

    @property
    def fetch_paused(self) -> bool:
        """Return True if this node is an observer that follows a leader and has no fetch in
        flight. It is False after a failed fetch."""
        return follower.fetch_paused(self._core)

    def fetch_now(self, now_ms: int) -> None:
        """End the pause before the next fetch of an observer, if there is one."""
        self._core.now_ms = now_ms
        follower.end_pause(self._core)
        self._step()

    def resign(self, now_ms: int) -> None:
        """Begin an orderly stop. `Resigned` is emitted when the node may stop: for a leader, after
        it has asked the voters to elect another, which it tries until its election timeout."""
        core = self._core
        core.now_ms = now_ms
        core.resigning = True
        if isinstance(core.state, Leader):
            leader.resign(core, core.state)
        self._step()

    # Outputs

    def take_effects(self) -> list[Effect]:
        """Return the effects since the last call. The caller carries them out in this order."""
        return self._core.take_effects()

    def deadline_ms(self) -> int | None:
        """Return the time of the next `tick`, or None if none is needed."""
        state = self._core.state
        if self._core.stopped:
            return None
        if isinstance(state, Leader):
            return earliest(state.check_quorum_ms, state.begin_epoch_ms, state.delayed_fetch_ms)
        if isinstance(state, Unattached | Follower):
            return earliest(state.deadline_ms, follower.next_fetch_ms(self._core, state))
        return min((state.deadline_ms, *state.retry_ms.values()))

    def describe(self) -> QuorumDescription | None:
        """Return the leader's view of all replicas, or None if this node does not lead."""
        return describe(self._core)

    def voters_at(self, end_offset: int) -> QuorumVoters:
        """Return the voters according to all records below `end_offset`."""
        return self._core.history.at(end_offset)

    @property
    def role(self) -> Role:
        """The current role."""
        return self._core.state.role

    @property
    def epoch(self) -> int:
        """The current epoch."""
        return self._core.epoch

    @property
    def leader_id(self) -> int:
        """The leader of the current epoch, or NO_NODE if this node knows none."""
        return self._core.leader_id

    @property
    def catching_up(self) -> bool:
        """Return True while this node must not vote: its directory lost records."""
        return self._core.catching_up

    @property
    def replaced_voter(self) -> ReplicaKey | None:
        """The voter with this node's id and another directory id, or None (membership.py)."""
        return replaced_voter(self._core)

    @property
    def voted_id(self) -> int:
        """The candidate that got this node's vote in this epoch, or NO_NODE."""
        voted = self._core.election.voted
        return NO_NODE if voted is None else voted.id

    @property
    def refused_claims(self) -> int:
        """The number of refused claims of other nodes since the start (epoch_limits.py)."""
        return self._core.refused_claims

    @property
    def last_refused_claim(self) -> str:
        """The text of the last refused claim, or an empty string."""
        return self._core.last_refused_claim

    @property
    def high_watermark(self) -> int:
        """Everything below this offset is committed. More may be committed than this node knows."""
        return self._core.high_watermark

    def _step(self) -> None:
        core = self._core
        if core.resigning and not isinstance(core.state, ResignedLeader):
            core.stop()
            return
        while True:
            state = core.state
            ROLE_STEPS[state.role](core, state)
            if core.state is state:
                return
