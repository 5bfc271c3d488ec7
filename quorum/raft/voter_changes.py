"""The leader's rules for changes of the voters, one voter at a time (KIP-853).

Every change passes these checks, in Kafka's order:

1. This epoch has committed a record.
2. No other change is pending, and the last VotersRecord is committed.
3. kraft.version allows the change.

A new voter must also answer at its address and have caught up as an observer. A replica that lost
its log since then neither votes nor acknowledges (catching_up.py), so it is not added. The change
succeeds when the new set has committed it. If the leader loses its epoch before that, the outcome
is unknown.

`add`, `voter_probed`, `remove` and `upgrade` raise VoterChangeRefused if the change cannot be made,
and no record is appended then. Otherwise `VoterChangeResult` reports the outcome later.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from quorate.quorum.ids import ZERO_UUID, ReplicaKey
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.raft import effects
from quorate.quorum.raft.control_records import (
    SUPPORTED,
    ControlRecord,
    KRaftVersionRecord,
    Voter,
    VotersRecord,
)
from quorate.quorum.raft.core import Core
from quorate.quorum.raft.fetch_serving import leader_refusal
from quorate.quorum.raft.leader import append_control
from quorate.quorum.raft.messages import UpdateVoterRequest, UpdateVoterResponse
from quorate.quorum.raft.states import Leader, VoterChange
from quorate.quorum.raft.voter_history import key_of
from quorate.quorum.raft.voter_set import NO_OFFSET

CAUGHT_UP_WITHIN_MS = 3_600_000
"""A replica may become a voter if it was caught up with this leader within this time."""
NO_ADMINISTRATOR = -1
"""The token of a change that no administrator waits for. Smaller tokens mean the same."""
KRAFT_VERSION = "kraft.version"
KRAFT_VERSIONS = (SUPPORTED.min_supported_version, SUPPORTED.max_supported_version)


class VoterChangeRefused(Exception):
    """The refusal of a change, with Kafka's error code in `error`."""

    def __init__(self, error: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.error = error


def add(core: Core, token: int, voter: Voter) -> None:
    """Begin to add a voter: probe its address. `voter_probed` continues. No other change can begin
    until then."""
    state = _leader(core)
    _require_described(core, voter)
    _require_ready(core, state)
    _require_new(core, voter)
    state.change = VoterChange(token, voter)
    core.emit(effects.ProbeVoter(token, voter))


def voter_probed(core: Core, token: int, met: bool) -> None:
    """Continue to add a voter after its probe, if that change is still pending. All checks run
    again, because the state may have changed. A refusal ends the change."""
    state = core.state
    if not isinstance(state, Leader) or state.change is None or state.change.token != token:
        return
    voter = state.change.voter
    if voter is None:
        return  # its record is appended already
    state.change = None
    _require_ready(core, state)
    _require_new(core, voter)
    if not met:
        raise VoterChangeRefused(
            ErrorCode.REQUEST_TIMED_OUT,
            f"replica {voter.voter_id} did not answer at {_address(voter)}: no node with this id "
            "and directory id answers there. Check its address and start it",
        )
    _require_supporting(core, voter)
    progress = state.observers.get(key_of(voter))
    since_ms = max(1, core.now_ms - CAUGHT_UP_WITHIN_MS)
    if progress is None or progress.caught_up_ms < since_ms or progress.end_offset == NO_OFFSET:
        raise VoterChangeRefused(
            ErrorCode.REQUEST_TIMED_OUT,
            f"replica {key_of(voter)} has not caught up with the leader's log. Start it as an "
            "observer, wait until `describe --replication` shows no lag, then add it",
        )
    _change(core, state, token, [*core.history.latest.voters, voter])


def remove(core: Core, token: int, voter: ReplicaKey) -> None:
    """Remove a voter. The last voter cannot be removed."""
    state = _leader(core)
    _require_whole(voter)
    _require_ready(core, state)
    voters = core.history.latest.voters
    left = [each for each in voters if key_of(each) != voter]
    if len(left) == len(voters):
        raise VoterChangeRefused(ErrorCode.VOTER_NOT_FOUND, f"replica {voter} is not a voter")
    if not left:
        raise VoterChangeRefused(
            ErrorCode.VOTER_NOT_FOUND, f"replica {voter} is the only voter and cannot be removed"
        )
    _change(core, state, token, left)


def on_update_voter(core: Core, token: int, request: UpdateVoterRequest) -> None:
    """Handle a controller's report about itself: other addresses, other versions, or the wish to
    join (controller.quorum.auto.join.enable). Respond immediately: a response without an error does
    not mean that the change is committed."""
    error = leader_refusal(core, request)
    if error == ErrorCode.NONE and key_of(request.voter) != request.replica:
        error = ErrorCode.INVALID_REQUEST
    if error == ErrorCode.NONE:
        try:
            (_join if request.join else _update)(core, request.voter)
        except VoterChangeRefused as refused:
            error = refused.error
    core.reply(token, UpdateVoterResponse(error=error, epoch=core.epoch, leader_id=core.leader_id))


def _update(core: Core, voter: Voter) -> None:
    """Replace the voter's entry if it has changed."""
    state = _leader(core)
    _require_described(core, voter)
    _require_ready(core, state)
    _require_supporting(core, voter)
    voters = core.history.latest.voters
    if all(key_of(each) != key_of(voter) for each in voters):
        raise VoterChangeRefused(ErrorCode.VOTER_NOT_FOUND, f"{key_of(voter)} is not a voter")
    updated = [voter if key_of(each) == key_of(voter) else each for each in voters]
    if tuple(updated) != voters:
        _change(core, state, NO_ADMINISTRATOR, updated)


def _join(core: Core, voter: Voter) -> None:
    """Add the controller. If its id is that of a voter with another directory, remove that voter
    first.

    The controller repeats its request, and is added then.
    """
    old = next(
        (each for each in core.history.latest.voters if each.voter_id == voter.voter_id), None
    )
    if old is None:
        add(core, NO_ADMINISTRATOR - core.epoch, voter)  # the token names this leadership
    elif key_of(old) != key_of(voter):
        remove(core, NO_ADMINISTRATOR, key_of(old))


def require_upgrade(current: int, level: int) -> None:
    """Raise VoterChangeRefused if kraft.version cannot change from `current` to `level`."""
    if level not in KRAFT_VERSIONS or level < current:
        raise VoterChangeRefused(
            ErrorCode.INVALID_UPDATE_VERSION,
            f"kraft.version {current} cannot be changed to {level}: it can only be raised, to 1",
        )


def upgrade(core: Core, token: int, level: int, configured: Iterable[Voter]) -> None:
    """Move from the configured voters to voters in the log (kraft.version 1).

    `configured` names the voters' addresses. The directory ids are those that this node has pinned,
    which must be those of all voters. If `level` is the present one, report success immediately.
    """
    state = _leader(core)
    _require_settled(core, state)
    current = core.history.latest.kraft_version
    require_upgrade(current, level)
    if level == current:
        core.emit(effects.VoterChangeResult(token, ErrorCode.NONE, ""))
        return
    known = {each.id: each.directory_id for each in core.voters.pinned()}
    voters = [
        replace(each, voter_directory_id=known[each.voter_id])
        for each in configured
        if each.voter_id in known
    ]
    if len(voters) != len(core.voters.ids):
        missing = sorted(set(core.voters.ids) - set(known))
        raise VoterChangeRefused(
            ErrorCode.INVALID_UPDATE_VERSION,
            f"the directory ids of voters {missing} are unknown. Start all voters, then try again",
        )
    records = (
        KRaftVersionRecord(version=0, k_raft_version=level),
        VotersRecord(version=0, voters=tuple(voters)),
    )
    _append(core, state, token, records)


def _leader(core: Core) -> Leader:
    if not isinstance(core.state, Leader):
        raise VoterChangeRefused(ErrorCode.NOT_CONTROLLER, "this node does not lead the quorum")
    return core.state


def _require_whole(replica: ReplicaKey) -> None:
    if replica.id < 0 or replica.directory_id == ZERO_UUID:
        raise VoterChangeRefused(
            ErrorCode.INVALID_REQUEST,
            f"{replica} does not name a voter: give its id and its directory id",
        )


def _require_described(core: Core, voter: Voter) -> None:
    """Raise VoterChangeRefused if the voter has no address on the listener of this node's
    controllers."""
    _require_whole(key_of(voter))
    names = [each.name for each in voter.endpoints]
    wanted = [each.name for each in core.own_voter.endpoints[:1]] if core.own_voter else names[:1]
    if not wanted or wanted[0] not in names:
        raise VoterChangeRefused(
            ErrorCode.INVALID_REQUEST,
            f"voter {voter.voter_id} has the listeners {names}, but not "
            f"{wanted[0] if wanted else 'one'}, which controllers use to reach each other",
        )


def _require_supporting(core: Core, voter: Voter) -> None:
    level = core.history.latest.kraft_version
    supported = voter.k_raft_version_feature
    if not supported.min_supported_version <= level <= supported.max_supported_version:
        raise VoterChangeRefused(
            ErrorCode.INVALID_REQUEST,
            f"replica {voter.voter_id} does not support kraft.version {level}",
        )


def _require_settled(core: Core, state: Leader) -> None:
    if core.high_watermark <= state.epoch_start_offset:
        raise VoterChangeRefused(
            ErrorCode.REQUEST_TIMED_OUT,
            "this leader has not committed a record of its epoch yet; try again",
        )
    if state.change is not None or core.history.latest_offset >= core.high_watermark:
        raise VoterChangeRefused(
            ErrorCode.REQUEST_TIMED_OUT, "another change of the voters is pending; try again"
        )


def _require_ready(core: Core, state: Leader) -> None:
    _require_settled(core, state)
    if core.history.latest.kraft_version == 0:
        raise VoterChangeRefused(
            ErrorCode.UNSUPPORTED_VERSION,
            "the voters are configured in controller.quorum.voters (kraft.version 0). Upgrade "
            "first: `quorate features upgrade --feature kraft.version=1`",
        )


def _require_new(core: Core, voter: Voter) -> None:
    if voter.voter_id in core.voters.ids:
        raise VoterChangeRefused(
            ErrorCode.DUPLICATE_VOTER, f"a voter with id {voter.voter_id} already exists"
        )


def _change(core: Core, state: Leader, token: int, voters: list[Voter]) -> None:
    changed = {key_of(each) for each in voters} ^ set(map(key_of, core.history.latest.voters))
    assert len(changed) <= 1, f"more than one voter changes: {changed}"
    record = VotersRecord(version=0, voters=tuple(sorted(voters, key=lambda each: each.voter_id)))
    _append(core, state, token, (record,))


def _append(core: Core, state: Leader, token: int, records: tuple[ControlRecord, ...]) -> None:
    append_control(core, state, records)
    assert state.change is None, "a change of the voters is pending"
    state.change = VoterChange(token, None, core.log.end_offset - 1)


def _address(voter: Voter) -> str:
    return ", ".join(f"{each.host}:{each.port}" for each in voter.endpoints) or "no address"
