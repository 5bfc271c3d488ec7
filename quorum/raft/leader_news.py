"""News about the leader at the other nodes: it announces itself, resigns, or is dead.

BeginQuorumEpoch announces a leader, EndQuorumEpoch its resignation (KIP-595). A refused connection
to the leader's port is a hint: evidence that its process is dead, before a timeout shows it
(docs/differences.md).
"""

from __future__ import annotations

from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.raft.core import Core
from quorate.quorum.raft.election_timers import hint_deadline_ms
from quorate.quorum.raft.epoch_limits import is_credible
from quorate.quorum.raft.follower import cancel_fetch
from quorate.quorum.raft.messages import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
)
from quorate.quorum.raft.states import Follower
from quorate.quorum.raft.transitions import learn_leader


def on_begin_quorum_epoch(core: Core, token: int, request: BeginQuorumEpochRequest) -> None:
    """Follow the leader that announces itself, if the request is valid. Respond with an error
    otherwise."""
    error = ErrorCode.NONE
    if request.cluster_id != core.cluster_id:
        error = ErrorCode.INCONSISTENT_CLUSTER_ID
    elif request.epoch < core.epoch:
        error = ErrorCode.FENCED_LEADER_EPOCH
    elif request.leader_id < 0 or not _is_credible_leader(core, request):
        error = ErrorCode.INVALID_REQUEST
    elif not core.is_me(request.voter):
        error = ErrorCode.INVALID_VOTER_KEY
    else:
        learn_leader(core, request.epoch, request.leader_id, request.leader)
    core.reply(
        token, BeginQuorumEpochResponse(error=error, epoch=core.epoch, leader_id=core.leader_id)
    )


def on_end_quorum_epoch(core: Core, token: int, request: EndQuorumEpochRequest) -> None:
    """Schedule the next election if the sender is the leader that this node follows. Respond with
    an error if the request is invalid.

    The delay is 0 for the voter that the leader prefers, and longer for each voter after it."""
    error = ErrorCode.NONE
    if request.cluster_id != core.cluster_id:
        error = ErrorCode.INCONSISTENT_CLUSTER_ID
    elif request.epoch < core.epoch:
        error = ErrorCode.FENCED_LEADER_EPOCH
    elif request.leader_id < 0 or not _is_credible_leader(core, request):
        error = ErrorCode.INVALID_REQUEST
    else:
        learn_leader(core, request.epoch, request.leader_id)
        state = core.state
        if isinstance(state, Follower) and state.leader_id == request.leader_id:
            state.leader_gone = True
            core.resigned_epoch = core.epoch
            cancel_fetch(core, state.fetching)  # its response would be older than the resignation
            if state.deadline_ms is not None:
                state.deadline_ms = core.now_ms + _election_delay_ms(core, request)
    core.reply(
        token, EndQuorumEpochResponse(error=error, epoch=core.epoch, leader_id=core.leader_id)
    )


def _is_credible_leader(
    core: Core, request: BeginQuorumEpochRequest | EndQuorumEpochRequest
) -> bool:
    """Return True if the sender may be the leader of the epoch that it names."""
    return is_credible(core, request.epoch, request.leader_id, request.leader_id)


def on_leader_port_refused(core: Core, voter_id: int) -> None:
    """Schedule an election within HINT_DELAY_MAX_MS if the refused port is that of the leader that
    this node follows, and if this node may be elected."""
    state = core.state
    if isinstance(state, Follower) and state.leader_id == voter_id and not state.leader_gone:
        state.leader_gone = True
        if state.deadline_ms is not None:
            state.deadline_ms = min(state.deadline_ms, hint_deadline_ms(core))


def _election_delay_ms(core: Core, request: EndQuorumEpochRequest) -> int:
    """Return the delay of this node's election after a resignation.

    The first voter in the leader's list starts immediately, the others later and later. Two of them
    therefore seldom compete.
    """
    preferred = request.preferred_candidates
    if not preferred:
        return hint_deadline_ms(core) - core.now_ms  # a restarted leader knows no log ends
    limit_ms = core.settings.election_backoff_max_ms
    for position, candidate in enumerate(preferred):
        if core.is_me(candidate):
            return (limit_ms >> len(preferred) - 1) << position - 1 if position else 0
    return limit_ms
