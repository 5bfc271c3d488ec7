"""The log lines about elections and voters, as pure functions of what changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from quorate.quorum.ids import NO_NODE
from quorate.quorum.raft.control_records import Voter
from quorate.quorum.raft.effects import Role, RoleChanged, VotersChanged


class QuorumEvent(NamedTuple):
    """One line of the log. `kind` is a fixed name, such as "election-won"."""

    kind: str
    text: str


def role_event(before: RoleChanged | None, after: RoleChanged, end_offset: int) -> QuorumEvent:
    """Return the event of a new role, epoch or leader.

    `before` is None at the start of the node. `end_offset` is the end of its metadata log."""
    epoch = after.epoch
    was = None if before is None else before.role
    end = f"its metadata log ends at offset {end_offset}"
    if after.role is Role.LEADER:
        return QuorumEvent("election-won", f"won the election of epoch {epoch}; {end}")
    if after.role is Role.RESIGNED:
        return QuorumEvent(
            "leader-resigned",
            f"resigned as the leader of epoch {epoch}: it stops, it is no voter any more, or no "
            "majority of the voters fetches from it",
        )
    if after.role in (Role.PROSPECTIVE, Role.CANDIDATE):
        return QuorumEvent(*_campaign(before, after, end))
    if after.leader_id == NO_NODE:
        deposed = "lost the leadership: " if was is Role.LEADER else ""
        return QuorumEvent(
            "leader-unknown", f"{deposed}epoch {epoch} has begun and no leader of it is known yet"
        )
    lost = {
        Role.LEADER: "lost the leadership",
        Role.CANDIDATE: "lost the election",
        Role.PROSPECTIVE: "ended its campaign",
    }
    leads = f"node {after.leader_id} leads epoch {epoch}"
    if was is Role.PROSPECTIVE:  # perhaps it has only given up, and that leader is dead
        leads += ", as far as this node knows"
    if was in lost:
        return QuorumEvent("election-lost", f"{lost[was]}: {leads}")
    return QuorumEvent("leader-followed", f"follows the leader: {leads}")


def _campaign(before: RoleChanged | None, after: RoleChanged, end: str) -> tuple[str, str]:
    if after.role is Role.CANDIDATE:
        return "election-started", f"asks for votes as a candidate of epoch {after.epoch}; {end}"
    if before is not None and before.leader_id != NO_NODE:
        why = f"leader {before.leader_id} of epoch {before.epoch} does not answer or is gone"
    else:
        why = f"no leader of epoch {after.epoch} is known"
    return "pre-vote-started", f"asks whether it could win an election, because {why}; {end}"


def voters_events(before: Sequence[Voter] | None, change: VotersChanged) -> list[QuorumEvent]:
    """Return the events of voters that were added, removed, or have new addresses. `before` is
    empty or None if this node had read no voter set in the log yet."""
    after = change.voters
    if not before:
        return [QuorumEvent("voters-known", _first_voters(change))]
    old = {(each.voter_id, each.voter_directory_id): each for each in before}
    new = {(each.voter_id, each.voter_directory_id): each for each in after}
    now = f"the voters are now {', '.join(str(each.voter_id) for each in after) or 'none'}"
    found = [
        QuorumEvent("voter-added", f"added voter {each.voter_id} at {_address(each)}; {now}")
        for key, each in new.items()
        if key not in old
    ]
    found += [
        QuorumEvent("voter-removed", f"removed voter {each.voter_id} at {_address(each)}; {now}")
        for key, each in old.items()
        if key not in new
    ]
    found += [
        QuorumEvent(
            "voter-moved",
            f"voter {each.voter_id} has the address {_address(each)}, before {_address(old[key])}",
        )
        for key, each in new.items()
        if key in old and _address(each) != _address(old[key])
    ]
    return found


def _first_voters(change: VotersChanged) -> str:
    if change.voters:
        voters = ", ".join(f"{each.voter_id} at {_address(each)}" for each in change.voters)
        return f"the voters are {voters}"
    if change.voter_ids:
        voters = ", ".join(map(str, change.voter_ids))
        return f"the voters are {voters}, as configured in controller.quorum.voters"
    return "the voters are not known yet: this node will read them in the metadata log"


def _address(voter: Voter) -> str:
    return ", ".join(f"{each.host}:{each.port}" for each in voter.endpoints) or "no address"
