"""The end of a leadership: a resigned leader asks the voters to elect another (EndQuorumEpoch).

`leader.py` decides when a leader resigns; `check_quorum.py` is one of the reasons. The request
names the voters in the order of their logs, the longest first.
"""

from __future__ import annotations

from quorate.quorum.raft.core import Core
from quorate.quorum.raft.election_timers import election_deadline_ms
from quorate.quorum.raft.epoch_limits import has_next_epoch
from quorate.quorum.raft.messages import EndQuorumEpochRequest, EndQuorumEpochResponse
from quorate.quorum.raft.states import ResignedLeader
from quorate.quorum.raft.transitions import become_unattached, learn_from_response


def step_resigned(core: Core, state: ResignedLeader) -> None:
    """Ask the voters for an election until each has responded, or until the election timeout.

    A node that shuts down then stops. Any other node stays resigned until the timeout and then
    enters the next epoch, because a resigned node must not lead its old epoch again. In the last
    possible epoch it stays resigned.
    """
    if core.resigning and (not state.unacked or core.now_ms >= state.deadline_ms):
        core.stop()
    elif core.now_ms >= state.deadline_ms:
        if has_next_epoch(core):
            become_unattached(core, core.epoch + 1)
        else:
            state.deadline_ms = election_deadline_ms(core)
    else:
        _send_end_quorum_epoch(core, state)


def on_end_quorum_epoch_response(
    core: Core,
    voter_id: int,
    request: EndQuorumEpochRequest,
    response: EndQuorumEpochResponse | None,
) -> None:
    """Note that the voter knows. Without a response, retry unless the node is shutting down."""
    state = core.state
    if not isinstance(state, ResignedLeader):
        return
    state.awaiting.discard(voter_id)
    if response is None and not core.resigning:
        state.retry_ms[voter_id] = core.now_ms + core.settings.retry_backoff_ms
        return
    state.unacked.discard(voter_id)
    if response is not None:
        learn_from_response(core, voter_id, response)


def _send_end_quorum_epoch(core: Core, state: ResignedLeader) -> None:
    """Send the request to each voter that is due."""
    unacked = [each for each in core.voters.others(core.me.id) if each in state.unacked]
    for voter_id in state.take_due(unacked, core.now_ms):
        request = EndQuorumEpochRequest(
            cluster_id=core.cluster_id,
            leader_id=core.me.id,
            epoch=core.epoch,
            preferred_candidates=state.preferred,
        )
        core.send(voter_id, request)
