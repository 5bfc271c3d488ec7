"""Changes of role that follow when a node learns of a later epoch or of a leader."""

from __future__ import annotations

from dataclasses import replace

from quorate.quorum.ids import NO_NODE, ReplicaKey
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.raft import effects
from quorate.quorum.raft.core import MAX_ADDRESSES, Core
from quorate.quorum.raft.delayed_fetches import fail_waiting_requests
from quorate.quorum.raft.election_timers import election_deadline_ms
from quorate.quorum.raft.epoch_limits import is_credible, replaces_unproved_leader
from quorate.quorum.raft.messages import LeaderAddress, Response
from quorate.quorum.raft.states import Follower, Leader, Unattached


def become_unattached(core: Core, epoch: int) -> None:
    """Enter a later epoch without a known leader. A leader fails the requests that wait at it.

    A running timer continues, because an epoch in which this node may not vote must not delay its
    own election (R12 in tests/scenarios). A node that may not be elected has no timer.
    """
    old = core.state
    deadline_ms = None
    if core.is_electable:
        running_ms = None if isinstance(old, Leader) else old.deadline_ms
        deadline_ms = election_deadline_ms(core) if running_ms is None else running_ms
    core.become(Unattached(deadline_ms=deadline_ms), epoch, voted=None)
    fail_waiting_requests(core, old)


def become_voted(core: Core, candidate: ReplicaKey) -> None:
    """Vote for `candidate` in the current epoch, and wait one election timeout for its election."""
    deadline_ms = election_deadline_ms(core) if core.is_electable else None
    core.become(Unattached(deadline_ms=deadline_ms), core.epoch, voted=candidate)


def become_follower(core: Core, epoch: int, leader_id: int) -> None:
    """Follow the leader of `epoch`, which is the current or a later one."""
    old = core.state
    voted = core.election.voted if epoch == core.epoch else None
    deadline_ms = core.now_ms + core.settings.fetch_timeout_ms if core.is_electable else None
    follower = Follower(leader_id=leader_id, deadline_ms=deadline_ms)
    core.become(follower, epoch, voted=voted, leader_id=leader_id)
    core.lost_elections = 0
    fail_waiting_requests(core, old)
    address = core.addresses.get(leader_id)
    if address is not None and leader_id not in core.voters.ids:
        core.emit(effects.LeaderFound(leader_id, address.host, address.port))


def learn_from_response(core: Core, voter_id: int, response: Response) -> None:
    """Adopt the epoch, the leader and its address from a response, if they are credible and not
    older than this node's. Report an error in it that an operator has to act on."""
    core.report_refusal(voter_id, response.error)
    if response.error == ErrorCode.INCONSISTENT_CLUSTER_ID:
        return
    if is_credible(core, response.epoch, response.leader_id, voter_id):
        address = getattr(response, "leader", None)
        learn_leader(core, response.epoch, response.leader_id, address)


def learn_leader(
    core: Core, epoch: int, leader_id: int, address: LeaderAddress | None = None
) -> None:
    """Adopt that `leader_id` leads `epoch`. NO_NODE means that the sender knows no leader.

    Ignore an older epoch. If the leader is this node, adopt only the epoch, because only this node
    knows whether it leads. The caller has checked that the claim is credible (epoch_limits.py).
    """
    if leader_id == core.me.id:
        leader_id = NO_NODE  # only this node knows whether it leads
    if epoch < core.epoch:
        return
    if address is not None and leader_id != NO_NODE:
        _note_address(core, leader_id, address)
    if leader_id == NO_NODE:
        if epoch > core.epoch:
            become_unattached(core, epoch)
        return
    if replaces_unproved_leader(core, epoch, leader_id):
        _retract_leader(core)
    if epoch > core.epoch or core.leader_id == NO_NODE:
        become_follower(core, epoch, leader_id)


def _retract_leader(core: Core) -> None:
    """Enter the same epoch without the leader that never responded. The vote stays."""
    old, voted = core.state, core.election.voted
    assert isinstance(old, Follower) and not old.has_fetched
    core.set_election(replace(core.election, leader_id=NO_NODE))
    core.become(Unattached(deadline_ms=old.deadline_ms), core.epoch, voted=voted)
    core.resigned_epoch = -1
    fail_waiting_requests(core, old)


def _note_address(core: Core, leader_id: int, address: LeaderAddress) -> None:
    """Store the leader's address. The addresses of configured voters (kraft.version 0) never
    change."""
    configured = core.history.latest.kraft_version == 0 and leader_id in core.voters.ids
    if configured or core.addresses.get(leader_id) == address:
        return
    if leader_id not in core.addresses and len(core.addresses) >= MAX_ADDRESSES:
        return
    core.addresses[leader_id] = address
    core.emit(effects.LeaderFound(leader_id, address.host, address.port))
