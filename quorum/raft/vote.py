"""Elections: pre-vote and vote, of the candidate and of the voter (Raft 5.2 and 5.4.1; KIP-595,
KIP-853, KIP-996).

A node becomes a Candidate only after a majority of the voters has granted its pre-vote. Only a
Candidate begins a new epoch, except that a resigned leader enters the next one after a timeout
(resignation.py). A voter that was cut off therefore cannot depose a working leader when it returns
(R13 in tests/scenarios). A node is a Candidate at most once in each epoch, even across a restart.
Pre-votes of one epoch may be repeated.

A node is electable if it is a voter that is not catching up (`Core.is_electable`). A superseded
node wins no election and grants no vote.

The functions change `core` and emit effects; `Raft` calls them. None of them blocks.
"""

from __future__ import annotations

from quorate.quorum.ids import NO_NODE, ZERO_UUID, ReplicaKey
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.raft import leader
from quorate.quorum.raft.core import Core
from quorate.quorum.raft.election_timers import election_deadline_ms
from quorate.quorum.raft.epoch_limits import has_next_epoch, is_credible
from quorate.quorum.raft.messages import VoteRequest, VoteResponse
from quorate.quorum.raft.states import (
    Candidate,
    Follower,
    Leader,
    Prospective,
    Unattached,
    VoteRound,
)
from quorate.quorum.raft.transitions import (
    become_follower,
    become_unattached,
    become_voted,
    learn_from_response,
)

BACKOFF_BASE_MS = 100
"""After n lost elections in a row, the random backoff is less than this value times 2^n. It is also
less than `election_backoff_max_ms`."""


def campaign(core: Core) -> None:
    """Become a Prospective. The epoch, the vote and the known leader stay unchanged. The requests
    leave in the next `step_prospective`."""
    known = core.election
    state = Prospective(deadline_ms=election_deadline_ms(core), granted={core.me.id})
    core.become(state, known.epoch, voted=known.voted, leader_id=known.leader_id)


def step_prospective(core: Core, state: Prospective) -> None:
    """Become a Candidate in the next epoch if the pre-vote is won. If it is lost or its deadline
    has passed, follow the known leader again, or wait for the next election timeout. Otherwise ask
    the voters that have not responded.

    If this node is no longer electable, end its pre-vote. Then follow the known leader, or wait for
    one without an election timeout."""
    if not core.is_electable:  # it was removed from the voters
        if core.leader_id != NO_NODE:  # an Unattached node would not adopt a leader it knows
            become_follower(core, core.epoch, core.leader_id)
        else:
            core.become(Unattached(deadline_ms=None), core.epoch, voted=core.election.voted)
    elif _has_won(core, state) and has_next_epoch(core):
        candidate = Candidate(deadline_ms=election_deadline_ms(core))
        core.become(candidate, core.epoch + 1, voted=core.me)
    elif _is_over(core, state):
        if core.leader_id not in (NO_NODE, core.me.id):
            become_follower(core, core.epoch, core.leader_id)
        else:
            known = core.election
            again = Unattached(deadline_ms=election_deadline_ms(core))
            core.become(again, known.epoch, voted=known.voted, leader_id=known.leader_id)
    else:
        _send_vote_requests(core, state, pre_vote=True)


def step_candidate(core: Core, state: Candidate) -> None:
    """Become leader if the election is won. Otherwise start again with a pre-vote: at the election
    timeout, or at the end of a random backoff if the election is lost. Until then, ask the voters
    that have not responded, unless the election is lost.

    With hints enabled, a voter whose port refuses connections counts like one that refused its
    vote, as soon as another voter has refused."""
    if _has_won(core, state):
        leader.become_leader(core, state.granted)
    elif core.now_ms >= state.deadline_ms:
        if not state.lost:
            core.lost_elections += 1
        campaign(core)
    elif state.lost:
        return
    elif _is_lost(core, state) or _cannot_be_won(core, state):
        core.lost_elections += 1
        state.lost = True
        state.retry_ms.clear()
        limit_ms = BACKOFF_BASE_MS << min(core.lost_elections, 20)
        limit_ms = min(limit_ms, core.settings.election_backoff_max_ms)
        state.deadline_ms = core.now_ms + core.random.randrange(0, limit_ms)
    else:
        _send_vote_requests(core, state, pre_vote=False)


def _has_won(core: Core, state: VoteRound) -> bool:
    """Return True if a majority granted its vote and the quorum is not superseded."""
    return core.count_voters(state.granted) >= core.voters.majority and not core.superseded


def vote_saved(core: Core, epoch: int) -> None:
    """Count this node's vote for itself, which is durable now, if this node is still a candidate of
    `epoch`. A vote that a crash can take must not count (R1 in tests/scenarios)."""
    if isinstance(core.state, Candidate) and core.epoch == epoch:
        core.state.granted.add(core.me.id)


def on_vote_request(core: Core, token: int, request: VoteRequest) -> None:
    """Grant or refuse a vote or a pre-vote. The reply names the request by `token`.

    An invalid request gets an error and changes nothing. A request is invalid in these cases:

    - It is for another cluster or node.
    - Its epoch is earlier than this node's, or too far ahead (MAX_EPOCH_JUMP).
    - The candidate has the id of a voter but another directory id, or a negative id.
    - The end of the candidate's log is impossible. Its epoch must be below that of a vote, and not
      above that of a pre-vote. Neither the epoch nor the offset may be negative.

    A valid request of a later epoch raises the epoch of this node, even if it asks for a pre-vote,
    because another node is in that epoch already.

    This node grants its vote again to the candidate that it has voted for in this epoch. If it has
    not voted and knows no leader of the epoch, it grants its vote to a candidate whose log is not
    behind its own.

    It grants a pre-vote to each candidate whose log is not behind, with two exceptions. A leader
    refuses. A follower refuses if its leader has responded within the fetch timeout, and has
    neither resigned nor died as far as this node knows. A node that is catching up or superseded
    grants nothing at all."""
    error = _refusal(core, request)
    granted = False
    if error == ErrorCode.NONE:
        if request.epoch > core.epoch:
            become_unattached(core, request.epoch)
        assert core.epoch == request.epoch, f"asked in {request.epoch}, in epoch {core.epoch}"
        granted = _grants(core, request)
        if granted and not request.pre_vote and core.election.voted is None:
            become_voted(core, request.candidate)
        state = core.state
        if request.pre_vote and isinstance(state, Prospective):
            # The candidate has lost the leader, too. Its answer may differ now.
            state.rejected.discard(request.candidate.id)
    core.reply(
        token,
        VoteResponse(error=error, epoch=core.epoch, leader_id=core.leader_id, granted=granted),
    )


def on_vote_response(
    core: Core, voter_id: int, request: VoteRequest, response: VoteResponse | None
) -> None:
    """Count the response of a voter, and adopt a later epoch or a leader that it names.

    `response` is None if the voter did not respond in time. The voter is asked again after the
    retry backoff, unless the election is lost. Every change of role or epoch discards the requests
    in flight, so a response always belongs to the present round."""
    state = core.state
    if not isinstance(state, Candidate if not request.pre_vote else Prospective):
        return
    state.awaiting.discard(voter_id)
    if response is None:
        if not (isinstance(state, Candidate) and state.lost):
            state.retry_ms[voter_id] = core.now_ms + core.settings.retry_backoff_ms
        return
    learn_from_response(core, voter_id, response)
    if core.state is state and response.epoch <= core.epoch:
        granted = response.granted and response.error == ErrorCode.NONE
        (state.granted if granted else state.rejected).add(voter_id)


def _refusal(core: Core, request: VoteRequest) -> ErrorCode:
    """Return the error of a request, or NONE.

    The checks are Kafka's, in Kafka's order, except that the voter key is checked here, too. A
    request that is not for this node must not raise its epoch.
    """
    last = request.last
    if request.cluster_id != core.cluster_id:
        return ErrorCode.INCONSISTENT_CLUSTER_ID
    too_high = request.epoch + 1 if request.pre_vote else request.epoch
    if last.offset < 0 or not 0 <= last.epoch < too_high:
        return ErrorCode.INVALID_REQUEST
    if request.epoch < core.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if not is_credible(core, request.epoch, NO_NODE, request.candidate.id):
        return ErrorCode.INVALID_REQUEST
    if request.candidate.id < 0:
        return ErrorCode.INVALID_REQUEST
    if not core.is_me(request.voter) or not core.verify_voter_key(request.candidate):
        return ErrorCode.INVALID_VOTER_KEY
    return ErrorCode.NONE


def _grants(core: Core, request: VoteRequest) -> bool:
    """Return True if this node grants the vote.

    The candidate and this node need not be voters according to this node's log, which may be old
    (KIP-853; R7 in tests/scenarios).
    """
    if core.superseded or core.catching_up:
        return False
    up_to_date = request.last >= core.log_end()
    state = core.state
    if request.pre_vote:
        match state:
            case Leader():
                return False
            case Follower():
                # An observer votes, too: it may be a voter whose log is old (R7).
                silent = core.now_ms >= state.last_response_ms + core.settings.fetch_timeout_ms
                return up_to_date and (state.leader_gone or not state.has_fetched or silent)
            case _:  # Kafka refuses in a resigned leader; a grant elects the next one sooner
                return up_to_date
    if core.election.voted is not None:
        return core.election.voted in (
            request.candidate,
            ReplicaKey(request.candidate.id, ZERO_UUID),  # version 0 of quorum-state
        )
    if not isinstance(state, Unattached | Prospective) or core.leader_id != NO_NODE:
        return False
    return up_to_date


def _send_vote_requests(core: Core, state: VoteRound, *, pre_vote: bool) -> None:
    """Ask the voters that have not responded yet. A candidate does so only after its own vote is
    durable."""
    if core.superseded:
        state.retry_ms.clear()
        return
    if not pre_vote and core.me.id not in state.granted:
        return
    others = core.voters.others(core.me.id)
    unheard = [each for each in others if each not in state.granted | state.rejected]
    for voter_id in state.take_due(unheard, core.now_ms):
        request = VoteRequest(
            cluster_id=core.cluster_id,
            voter=core.voters.key(voter_id),
            candidate=core.me,
            epoch=core.epoch,
            last=core.log_end(),
            pre_vote=pre_vote,
        )
        core.send(voter_id, request)


def _cannot_be_won(core: Core, state: VoteRound) -> bool:
    """Return True if too few voters are left that can still grant their vote.

    A voter whose port refuses connections is dead and does not respond in this election. Without
    this rule, a tie of the living voters would have to wait for the timeout.
    """
    if not core.settings.hints or not state.rejected:
        return False
    hopeless = (state.rejected | core.refusing) - state.granted
    return core.count_voters(hopeless) > len(core.voters.ids) - core.voters.majority


def _is_over(core: Core, state: Prospective) -> bool:
    """Return True if this pre-vote leads to no election. A won one leads to none in the last
    epoch."""
    ended = _is_lost(core, state) or core.now_ms >= state.deadline_ms
    return ended or _has_won(core, state)


def _is_lost(core: Core, state: VoteRound) -> bool:
    """Return True if so many voters refused that no majority is left."""
    return core.count_voters(state.rejected) > len(core.voters.ids) - core.voters.majority
