"""The role in which a node starts, from its election file and its log.

| state on the disk | role |
|---|---|
| the file's epoch is older than the log's | Unattached in the log's epoch: the file is old, so its
  vote and leader mean nothing (R3 in tests/scenarios) |
| this node led the file's epoch | Resigned: it may have lost acknowledged records (KAFKA-10527);
  Unattached if it is the only voter or may not be elected |
| this node voted for itself | Unattached: it may have led, and must not win this epoch again |
| another node leads, and its address is known | Follower |
| anything else | Unattached |
"""

from __future__ import annotations

from dataclasses import replace

from quorate.quorum.ids import NO_NODE, ZERO_UUID
from quorate.quorum.raft.core import Core
from quorate.quorum.raft.election import Election
from quorate.quorum.raft.election_timers import election_deadline_ms
from quorate.quorum.raft.membership import apply_history, current_voters
from quorate.quorum.raft.states import (
    FIRST_ROLES,
    Follower,
    ResignedLeader,
    State,
    Unattached,
)
from quorate.quorum.raft.voter_history import STATIC_VOTERS


def start(core: Core) -> None:
    """Set the voters, the election and the first role, and emit the first effects. The only voter
    may start an election immediately."""
    election = core.election
    for replica in (*election.pinned, core.me):
        core.configured = core.configured.pin(replica)
    core.voters = current_voters(core)
    if core.log.last_epoch > election.epoch:
        election = Election(core.log.last_epoch, None, NO_NODE, election.pinned)
    alone = core.is_electable and core.is_voter and len(core.voters.ids) == 1
    if election.leader_id == core.me.id and (alone or not core.is_electable):
        election = replace(election, leader_id=NO_NODE)
    if election.leader_id != core.me.id and not core.has_address(election.leader_id):
        election = replace(election, leader_id=NO_NODE)  # the node asks for the leader's address
    pinned = core.voters.pinned() if core.is_voter else election.pinned
    voted = election.voted
    if voted is not None and voted.id == core.me.id and voted.directory_id == ZERO_UUID:
        voted = core.me  # version 0 of Kafka's file holds no directory id
    core.set_election(replace(election, voted=voted, pinned=pinned))
    core.state = _role(core, alone)
    assert core.epoch >= core.log.last_epoch, f"epoch {core.epoch}, log {core.log_end()}"
    assert core.durable_offset <= core.log.end_offset, f"{core.durable_offset} is beyond the log"
    if core.history.latest != STATIC_VOTERS:
        apply_history(core)
    core.verify_voter_key(core.me)  # reports another directory id than before


def _role(core: Core, alone: bool) -> State:
    state = _remembered_role(core, alone)
    assert state.role in FIRST_ROLES, f"a node cannot start as {state.role}"
    return state


def _remembered_role(core: Core, alone: bool) -> State:
    leader_id = core.leader_id
    if leader_id == core.me.id:
        return ResignedLeader(
            deadline_ms=election_deadline_ms(core),
            preferred=(),
            unacked=set(core.voters.others(core.me.id)),
        )
    if leader_id != NO_NODE:
        deadline_ms = core.now_ms + core.settings.fetch_timeout_ms if core.is_electable else None
        return Follower(leader_id=leader_id, deadline_ms=deadline_ms)
    if alone:
        return Unattached(deadline_ms=core.now_ms)
    return Unattached(deadline_ms=election_deadline_ms(core) if core.is_electable else None)
