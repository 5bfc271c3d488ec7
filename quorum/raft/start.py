"""The role in which a node comes back, from its election file and its log.

| the file says | the node is |
|---|---|
| less than the log's last epoch | Unattached in that: the file is an old copy (R3) |
| it led this epoch | Resigned: it may have lost records of it that others have (KAFKA-10527) |
| it voted for itself | Unattached: it may have led, so it must not win that epoch again |
| another leads, and it is known where | Follower |
| anything else | Unattached |
"""

from __future__ import annotations

from dataclasses import replace

from quorate.quorum.ids import NO_NODE, ZERO_UUID
from quorate.quorum.raft.core import Core
from quorate.quorum.raft.election import Election
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
        election = replace(election, leader_id=NO_NODE)  # where it is reached is asked anew
    pinned = core.voters.pinned() if core.is_voter else election.pinned
    voted = election.voted
    if voted is not None and voted.id == core.me.id and voted.directory_id == ZERO_UUID:
        voted = core.me  # Kafka's version 0 does not say which directory
    core.set_election(replace(election, voted=voted, pinned=pinned))
    core.state = _role(core, alone)
    assert core.state.role in FIRST_ROLES, f"a node cannot start as {core.state.role}"
    if core.history.latest != STATIC_VOTERS:
        apply_history(core)
    core.verify_voter_key(core.me)  # says so when the directory is not the one that voted before


def _role(core: Core, alone: bool) -> State:
    leader_id = core.leader_id
    if leader_id == core.me.id:
        return ResignedLeader(
            deadline_ms=core.election_deadline_ms(),
            preferred=(),
            unacked=set(core.voters.others(core.me.id)),
        )
    if leader_id != NO_NODE:
        deadline_ms = core.now_ms + core.settings.fetch_timeout_ms if core.is_electable else None
        return Follower(leader_id=leader_id, deadline_ms=deadline_ms)
    if alone:
        return Unattached(deadline_ms=core.now_ms)
    return Unattached(deadline_ms=core.election_deadline_ms() if core.is_electable else None)
