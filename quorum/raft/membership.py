"""The effect of control records on the voter set and on the roles (KIP-853).

A voter set is in effect as soon as its record is in the log, committed or not, as Raft demands for
changes of one voter at a time. A truncation restores the previous set. At kraft.version 0 the
configured voters are in effect, even if the log has a VotersRecord.
"""

from __future__ import annotations

from collections.abc import Iterable

from quorate.quorum.ids import ReplicaKey
from quorate.quorum.log.batches.batch import batches, records_of
from quorate.quorum.raft import effects
from quorate.quorum.raft.control_records import (
    ControlRecord,
    KRaftVersionRecord,
    VotersRecord,
    decode_control,
)
from quorate.quorum.raft.core import Core
from quorate.quorum.raft.election_timers import election_deadline_ms
from quorate.quorum.raft.high_watermark import advance
from quorate.quorum.raft.messages import LeaderAddress
from quorate.quorum.raft.states import NOT_YET_MS, Follower, Leader, Progress, Unattached
from quorate.quorum.raft.voter_history import QuorumVoters
from quorate.quorum.raft.voter_set import VoterSet
from quorate.quorum.seams import Buffer

VOTER_RECORDS = (KRaftVersionRecord, VotersRecord)
"""The control records that change the voters."""


def on_follower_append(core: Core, data: Buffer) -> None:
    """Apply the control records that this follower has appended."""
    for position, header in batches(data, verify=False):
        if header.is_control:
            for record in records_of(data, position, header):
                control = decode_control(record.key, record.value)
                if isinstance(control, VOTER_RECORDS):
                    core.history.append(record.offset, control)
            apply_history(core)  # after the batch: kraft.version 1 and its voters are in one


def on_leader_append(core: Core, base_offset: int, records: Iterable[ControlRecord]) -> None:
    """Apply the control records that this leader has appended from `base_offset` on."""
    for offset, record in enumerate(records, base_offset):
        if isinstance(record, VOTER_RECORDS):
            core.history.append(offset, record)
    apply_history(core)


def on_truncation(core: Core, end_offset: int) -> None:
    """Restore the voters of the remaining log."""
    if core.history.truncate_to(end_offset):
        apply_history(core)


def on_snapshot_installed(core: Core, quorum: QuorumVoters) -> None:
    """Adopt the voters of the snapshot that has replaced the log."""
    core.history.reset(quorum)
    apply_history(core)


def current_voters(core: Core) -> VoterSet:
    """Return the voter set according to the log, or the configured voters at kraft.version 0."""
    quorum = core.history.latest
    if quorum.kraft_version == 0:
        return core.configured
    return VoterSet(ReplicaKey(voter.voter_id, voter.voter_directory_id) for voter in quorum.voters)


def replaced_voter(core: Core) -> ReplicaKey | None:
    """Return the voter that has this node's id and another directory id, or None.

    The log names it at kraft.version 1. At kraft.version 0 only the leader knows it."""
    if core.voters.is_impostor(core.me):
        return core.voters.key(core.me.id)
    return core.state.replaced_voter if isinstance(core.state, Follower) else None


def apply_history(core: Core) -> None:
    """Make the latest voters of the log effective and emit `VotersChanged`, if they have changed.

    A leader adopts the new voters in its records of replicas and may commit more. A node that
    becomes a voter, or is none any more, starts or stops its election timer."""
    quorum = core.history.latest
    if quorum == core.applied_voters:
        return
    core.applied_voters = quorum
    campaigned = core.is_electable
    core.voters = current_voters(core)
    for voter in quorum.voters:
        if voter.endpoints:
            endpoint = voter.endpoints[0]
            core.addresses[voter.voter_id] = LeaderAddress(host=endpoint.host, port=endpoint.port)
    core.emit(effects.VotersChanged(quorum.kraft_version, quorum.voters, core.voters.ids))
    state = core.state
    if isinstance(state, Leader):
        _apply_as_leader(core, state)
        advance(core, state)
    elif isinstance(state, Unattached | Follower) and core.is_electable != campaigned:
        state.deadline_ms = election_deadline_ms(core) if core.is_electable else None


def _apply_as_leader(core: Core, state: Leader) -> None:
    """Adopt the voter set in the leader's records of replicas.

    A new voter starts without acknowledgements. The records that it fetched as an observer may not
    be durable there.
    """
    others = core.voters.others(core.me.id)
    for voter_id in [each for each in state.voters if each not in others]:
        _to_observers(state, state.voters.pop(voter_id))
    for voter_id in others:
        key = core.voters.key(voter_id)
        known = state.voters.get(voter_id)
        if known is not None and known.key == key:
            continue
        if known is not None:
            _to_observers(state, state.voters.pop(voter_id))
        observer = state.observers.pop(key, None)
        progress = Progress(key, True)
        if observer is not None:
            progress.delayed_fetch, progress.last_fetch_ms = (
                observer.delayed_fetch,
                observer.last_fetch_ms,
            )
            progress.caught_up_ms = observer.caught_up_ms
        state.voters[voter_id] = progress
    state.fetched &= set(others)
    if not others:
        state.check_quorum_ms = state.begin_epoch_ms = None
    else:
        state.begin_epoch_ms = core.now_ms
        if state.check_quorum_ms is None:
            state.check_quorum_ms = core.now_ms + core.settings.check_quorum_timeout_ms


def _to_observers(state: Leader, progress: Progress) -> None:
    """Keep a removed voter as an observer if it has fetched."""
    if progress.last_fetch_ms == NOT_YET_MS:
        return  # it may not exist any more
    progress.is_voter = False
    delayed = progress.delayed_fetch
    if delayed is not None:
        delayed.high_watermark = min(delayed.high_watermark, delayed.offset)
    state.observers[progress.key] = progress
