"""The role of the leader: append records, announce the epoch, resign.

- The first record of an epoch is its LeaderChange message. No record is committed before it (Figure
  8 of the Raft paper; R19 in tests/scenarios).
- The leader counts its own records only after its flush, because a crash can take them before
  (R20). Followers receive them earlier, so that all voters flush at the same time.
- The fetch offset of a voter never decreases within an epoch. A voter that steps back has lost
  records that may count as committed (KAFKA-12181, R17).
- A leader resigns if no majority of the voters fetches (check quorum).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from quorate.quorum.ids import NO_NODE
from quorate.quorum.log.batches.batch import CONTROL, build_batch, build_value_batch
from quorate.quorum.log.batches.record import Record
from quorate.quorum.log.files.errors import OutOfFiles
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.raft import check_quorum, effects, fetch_serving, membership
from quorate.quorum.raft.control_records import (
    ControlRecord,
    VotersRecord,
    encode_control,
    leader_change,
)
from quorate.quorum.raft.core import Core
from quorate.quorum.raft.delayed_fetches import (
    complete_voter_fetches,
    expire_delayed_fetches,
    fail_waiting_requests,
)
from quorate.quorum.raft.election_timers import election_deadline_ms
from quorate.quorum.raft.epoch_limits import is_plausible
from quorate.quorum.raft.errors import BatchTooLarge, NotLeader
from quorate.quorum.raft.messages import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    FetchRequest,
)
from quorate.quorum.raft.states import Leader, Progress, ResignedLeader, ServedSlice
from quorate.quorum.raft.transitions import become_unattached, learn_from_response
from quorate.quorum.raft.voter_history import key_of
from quorate.quorum.seams import Buffer
from quorate.quorum.state_in_doubt import changing


def become_leader(core: Core, granted: Collection[int]) -> None:
    """Become leader of the current epoch, and append its first batch: the LeaderChange record, and
    the records about voters that the log lacks. `granted` holds the voters that granted their
    vote."""
    voters = core.voters
    others = voters.others(core.me.id)
    state = Leader(
        epoch_start_offset=core.log.end_offset,
        voters={voter_id: Progress(voters.key(voter_id), True) for voter_id in others},
        check_quorum_ms=core.now_ms + core.settings.check_quorum_timeout_ms if others else None,
        begin_epoch_ms=core.now_ms if others else None,
    )
    assert core.count_voters(granted) >= voters.majority, f"elected by {sorted(granted)} only"
    assert core.election.voted == core.me, f"elected without its own vote: {core.election}"
    assert core.log.last_epoch < core.epoch, "the log has records of the new epoch already"
    core.become(state, core.epoch, voted=core.me, leader_id=core.me.id)
    core.lost_elections = 0
    granting = tuple(voters.key(voter_id) for voter_id in voters.ids if voter_id in granted)
    change = leader_change(core.me.id, voters.keys(), granting)
    append_control(core, state, [change, *_missing_voter_records(core)])


def _missing_voter_records(core: Core) -> list[ControlRecord]:
    """Return the records about voters that the log lacks, for the first batch of the epoch.

    They are the voters that `storage format` wrote outside of the log, or this node's new address.
    """
    quorum, own_voter = core.history.latest, core.own_voter
    if quorum.kraft_version == 0:
        return []
    voters = tuple(
        own_voter if own_voter is not None and key_of(each) == key_of(own_voter) else each
        for each in quorum.voters
    )
    if core.history.latest_offset < 0 and not core.history.base_in_log:
        return replace(quorum, voters=voters).records()
    return [VotersRecord(version=0, voters=voters)] if voters != quorum.voters else []


def append_control(core: Core, state: Leader, records: Sequence[ControlRecord]) -> None:
    """Append Raft's own records as one batch. A new set of voters is in effect on return."""
    base_offset = core.log.end_offset
    rows = [
        Record(offset, core.wall_ms, *encode_control(record))
        for offset, record in enumerate(records, base_offset)
    ]
    batch = build_batch(rows, leader_epoch=core.epoch, flags=CONTROL)
    _append_to_log(core, core.wall_ms, batch)
    _replicate(core, state, base_offset, batch)
    membership.on_leader_append(core, base_offset, records)


def append(core: Core, wall_ms: int, values: Sequence[bytes]) -> int:
    """Append `values` as one batch, and return the offset of the last one.

    Raise NotLeader if this node does not lead, and BatchTooLarge if the batch exceeds its bound. If
    the process has no file descriptor for the log, resign and raise NotLeader.
    On return the batch is in the page cache, on its way to waiting voters, and a flush is emitted.
    """
    state = core.state
    if not isinstance(state, Leader):
        raise NotLeader(core.epoch, core.leader_id)
    batch = build_value_batch(
        values,
        base_offset=core.log.end_offset,
        leader_epoch=core.epoch,
        timestamp_ms=wall_ms,
    )
    if len(batch) > core.settings.max_batch_bytes:
        raise BatchTooLarge(len(batch), core.settings.max_batch_bytes)
    try:
        base_offset = _append_to_log(core, wall_ms, batch)
    except OutOfFiles:  # the log is unchanged
        resign(core, state)
        raise NotLeader(core.epoch, NO_NODE) from None
    with changing("Raft's state after an append"):
        _replicate(core, state, base_offset, batch)
    return core.log.end_offset - 1


def _append_to_log(core: Core, wall_ms: int, batch: Buffer) -> int:
    """Append the batch, and return its base offset."""
    base_offset = core.log.end_offset
    core.log.append(batch, wall_ms=wall_ms)
    assert core.log.end_offset > base_offset and core.log.last_epoch == core.epoch
    return base_offset


def _replicate(core: Core, state: Leader, base_offset: int, batch: Buffer) -> None:
    """Send the appended batch to the voters that wait, before it is durable here."""
    state.served_slice = ServedSlice(base_offset, core.log.end_offset, batch)
    complete_voter_fetches(core, state)
    core.flush()


def step_leader(core: Core, state: Leader) -> None:
    """Resign if no majority fetches, or if the removal of this node is committed. Otherwise do
    everything that is due."""
    if check_quorum.has_expired(core, state):
        resign(core, state)
        return
    _complete_voter_change(core, state)
    if not core.is_voter and core.history.latest_offset < core.high_watermark:
        resign(core, state)  # a removed leader leads until its removal is committed
        return
    if state.begin_epoch_ms is not None and core.now_ms >= state.begin_epoch_ms:
        _send_begin_quorum_epoch(core, state)
    if state.delayed_fetch_ms is not None and core.now_ms >= state.delayed_fetch_ms:
        expire_delayed_fetches(core, state)


def _complete_voter_change(core: Core, state: Leader) -> None:
    """Report success of the pending voter change if its record is committed."""
    change = state.change
    if change is None or change.offset is None or change.offset >= core.high_watermark:
        return
    state.change = None
    core.emit(effects.VoterChangeResult(change.token, ErrorCode.NONE, ""))


def on_fetch(core: Core, token: int, request: FetchRequest) -> None:
    """Serve a fetch, and step down if the fetcher is an observer in a later epoch.

    Such an observer can follow no leader of this epoch, and it never campaigns. The next election
    passes its epoch (Raft 5.1). The same holds for a voter that catches up after a loss.
    """
    fetch_serving.on_fetch(core, token, request)
    ahead = request.cluster_id == core.cluster_id and request.epoch > core.epoch
    if (
        ahead
        and (request.catching_up or request.replica not in core.voters)
        and isinstance(core.state, Leader)
        and is_plausible(core, request.epoch)
    ):
        become_unattached(core, request.epoch)


def resign(core: Core, state: Leader) -> None:
    """Give up the leadership of this epoch, and fail the requests that wait here. The epoch stays
    until another node raises it or the election timeout passes."""
    by_offset = sorted(state.voters.values(), key=lambda each: (-each.end_offset, each.key.id))
    resigned = ResignedLeader(
        deadline_ms=election_deadline_ms(core),
        preferred=tuple(progress.key for progress in by_offset),
        unacked=set(state.voters),
    )
    core.become(resigned, core.epoch, voted=core.election.voted, leader_id=core.me.id)
    fail_waiting_requests(core, state)


def on_begin_quorum_epoch_response(
    core: Core,
    voter_id: int,
    request: BeginQuorumEpochRequest,
    response: BeginQuorumEpochResponse | None,
) -> None:
    """Note that the voter knows this leader, unless it responds with an error. Adopt a later epoch
    that it names."""
    state = core.state
    if not isinstance(state, Leader) or response is None:
        return
    learn_from_response(core, voter_id, response)
    if response.error == ErrorCode.NONE and voter_id in state.voters:
        state.voters[voter_id].knows_leader = True


def _send_begin_quorum_epoch(core: Core, state: Leader) -> None:
    """Announce this leader to every voter that has neither acknowledged it nor fetched."""
    uninformed = [each for each in state.voters.values() if not each.knows_leader]
    for progress in uninformed:
        request = BeginQuorumEpochRequest(
            cluster_id=core.cluster_id,
            voter=progress.key,
            leader_id=core.me.id,
            epoch=core.epoch,
            leader=core.addresses.get(core.me.id),
        )
        core.send(progress.key.id, request)
    interval_ms = core.settings.begin_epoch_interval_ms
    state.begin_epoch_ms = core.now_ms + interval_ms if uninformed else None
