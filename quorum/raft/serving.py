"""The leader's answers to fetches, and the high watermark that they raise.

A fetch is answered at once when it brings something: data for a voter, a higher high watermark for
whoever asked to be told. An observer is served committed records only, so its data and the news
that it is committed travel in one answer, and an observer never has to truncate. All else is
parked: at most one fetch per replica, at most `max_wait_ms`.
"""

from __future__ import annotations

from collections.abc import Iterator

from quorate.quorum.ids import EpochOffset, ReplicaKey
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.raft import effects
from quorate.quorum.raft.core import Core
from quorate.quorum.raft.messages import (
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    UpdateVoterRequest,
)
from quorate.quorum.raft.states import DelayedFetch, Leader, Progress, ServedSlice, State
from quorate.quorum.raft.voter_set import NO_OFFSET, majority_offset
from quorate.quorum.seams import Buffer


def on_fetch(core: Core, token: int, request: FetchRequest) -> None:
    is_valid = (
        request.offset >= 0
        and 0 <= request.last_fetched_epoch <= request.epoch
        and request.max_wait_ms >= 0
    )
    error = leader_refusal(core, request, is_valid=is_valid)
    if error != ErrorCode.NONE:
        _refuse(core, token, error)
        return
    state = core.state
    assert isinstance(state, Leader)
    progress = progress_of(core, state, request.replica)
    if progress is None:
        _refuse(core, token, ErrorCode.REQUEST_TIMED_OUT)
        return
    complete_delayed_fetch(core, progress, ErrorCode.NONE)
    progress.last_fetch_ms = core.now_ms
    if progress.is_voter:
        note_voter_fetch(core, state, progress)
    if request.catching_up:
        progress.end_offset = NO_OFFSET  # what it acknowledged before is lost
    steps_back = progress.is_voter and request.offset < progress.end_offset
    snapshot = needed_snapshot(core, request.offset, request.last_fetched_epoch)
    if snapshot is not None and not steps_back:
        core.reply(token, _response(core, ErrorCode.NONE, snapshot=snapshot))
        return
    diverging = diverging_epoch(core, request.offset, request.last_fetched_epoch)
    if diverging is not None:
        core.reply(token, _response(core, ErrorCode.NONE, diverging=diverging))
        return
    if steps_back:
        reason = (
            f"voter {progress.key} fetches from offset {request.offset} after it had acknowledged "
            f"all below {progress.end_offset}: it lost records that count as committed "
            "(KAFKA-12181). Stop it, run `quorate storage declare --lost`, and start it again: it "
            "catches up before it votes"
        )
        core.report(progress.key.id, reason)
        _refuse(core, token, ErrorCode.INVALID_REQUEST)
        return
    _record_fetch(core, progress, request)
    high_watermark = request.high_watermark
    if not progress.is_voter:  # who has not heard of its removal asks as a voter
        high_watermark = min(high_watermark, request.offset)
    delayed = DelayedFetch(
        token,
        request.offset,
        high_watermark,
        min(request.max_bytes, core.settings.fetch_max_bytes),
        core.now_ms + min(request.max_wait_ms, core.settings.fetch_max_wait_ms),
    )
    progress.delayed_fetch = delayed
    if progress.is_voter:
        advance(core, state)
    if progress.delayed_fetch is not delayed:
        return
    if _is_ready(core, progress, delayed):
        complete_delayed_fetch(core, progress, ErrorCode.NONE)
    elif state.delayed_fetch_ms is None or delayed.deadline_ms < state.delayed_fetch_ms:
        state.delayed_fetch_ms = delayed.deadline_ms


def complete_voter_fetches(core: Core, state: Leader) -> None:
    """The log has grown: voters that wait for data get it, before it is durable here."""
    for progress in state.voters.values():
        if progress.delayed_fetch is not None:
            complete_delayed_fetch(core, progress, ErrorCode.NONE)


def advance(core: Core, state: Leader) -> None:
    """Raise the high watermark to what a majority has made durable."""
    offsets = [progress.end_offset for progress in state.voters.values()]
    if core.is_voter:  # a leader that was removed leads on, uncounted (KAFKA-16530)
        offsets.append(core.durable_offset)
    offset = majority_offset(offsets)
    if offset <= core.high_watermark or offset <= state.epoch_start_offset:
        return
    core.raise_high_watermark(offset)
    for replicas in (state.observers, state.voters):
        for progress in replicas.values():
            delayed = progress.delayed_fetch
            if delayed is not None and delayed.high_watermark < offset:
                complete_delayed_fetch(core, progress, ErrorCode.NONE)


def expire_delayed_fetches(core: Core, state: Leader) -> None:
    """Answer the fetches that have waited long enough."""
    state.delayed_fetch_ms = None
    for replicas in (state.voters, state.observers):
        for progress in replicas.values():
            delayed = progress.delayed_fetch
            if delayed is None:
                continue
            if delayed.deadline_ms <= core.now_ms:
                complete_delayed_fetch(core, progress, ErrorCode.NONE)
            elif state.delayed_fetch_ms is None or delayed.deadline_ms < state.delayed_fetch_ms:
                state.delayed_fetch_ms = delayed.deadline_ms


def fail_waiting_requests(core: Core, old: State) -> None:
    """Whoever waits at a deposed leader is told at once where to go (R25)."""
    if isinstance(old, Leader):
        for progress in (*old.voters.values(), *old.observers.values()):
            complete_delayed_fetch(core, progress, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if old.change is not None:
            lost = "leadership was lost before the change was committed: look before trying again"
            core.emit(
                effects.VoterChangeResult(old.change.token, ErrorCode.REQUEST_TIMED_OUT, lost)
            )


def complete_delayed_fetch(core: Core, progress: Progress, error: ErrorCode) -> None:
    delayed = progress.delayed_fetch
    if delayed is None:
        return
    progress.delayed_fetch = None
    if error != ErrorCode.NONE:
        _refuse(core, delayed.token, error)
        return
    end = core.log.end_offset if progress.is_voter else core.high_watermark
    core.reply(delayed.token, _read_slice(core, delayed.offset, delayed.max_bytes, end))


def diverging_epoch(core: Core, offset: int, last_fetched_epoch: int) -> EpochOffset | None:
    """Where this log's epochs up to `last_fetched_epoch` end, unless the fetcher's log is a prefix
    of this one."""
    log = core.log
    if offset == 0 and last_fetched_epoch == 0:
        return None
    if last_fetched_epoch == log.last_epoch and offset <= log.end_offset:
        return None  # as nearly always
    end = log.epochs.end_offset_for(last_fetched_epoch) or core.log_end()
    earliest = core.snapshots.earliest
    if earliest is not None and end.offset == earliest.offset:
        end = earliest  # all epochs of the log may be later: it does not say what ended there
    if end.epoch == last_fetched_epoch and offset <= end.offset:
        return None
    return end


def needed_snapshot(core: Core, offset: int, last_fetched_epoch: int) -> EpochOffset | None:
    """The latest one, for who starts from nothing or from what this log has cut off (KIP-630)."""
    latest, earliest = core.snapshots.latest, core.snapshots.earliest
    if latest is None or earliest is None:
        return None
    start_offset = core.log.start_offset
    if offset == 0 or offset < start_offset:
        return latest
    # Epochs before the cut are not known here, so neither is where they diverge.
    is_cut_off = start_offset > 0 and last_fetched_epoch < earliest.epoch
    return latest if is_cut_off else None


def leader_refusal(
    core: Core,
    request: FetchRequest | FetchSnapshotRequest | UpdateVoterRequest,
    *,
    is_valid: bool = True,
) -> ErrorCode:
    """Kafka's checks in Kafka's order."""
    if request.cluster_id != core.cluster_id:
        return ErrorCode.INCONSISTENT_CLUSTER_ID
    if not is_valid or request.replica.id < 0:
        return ErrorCode.INVALID_REQUEST
    epoch = core.election.epoch
    if request.epoch != epoch:
        stale = request.epoch < epoch
        return ErrorCode.FENCED_LEADER_EPOCH if stale else ErrorCode.UNKNOWN_LEADER_EPOCH
    return ErrorCode.NONE if isinstance(core.state, Leader) else ErrorCode.NOT_LEADER_OR_FOLLOWER


def progress_of(core: Core, state: Leader, replica: ReplicaKey) -> Progress | None:
    """The fetcher's place in the books; None when there are too many observers."""
    progress = state.voters.get(replica.id)
    if progress is not None and progress.key.directory_id == replica.directory_id:
        return progress
    if progress is not None and core.verify_voter_key(replica):
        progress.key = core.voters.key(replica.id)
        return progress
    progress = state.observers.get(replica)
    if progress is None:
        if len(state.observers) >= core.settings.max_observers:
            state.observers = dict(live_observers(core, state))
        if len(state.observers) >= core.settings.max_observers:
            return None
        core.verify_voter_key(
            replica
        )  # says so when it is a voter's id on another disk: it may only observe
        progress = state.observers[replica] = Progress(replica, False)
    return progress


def live_observers(core: Core, state: Leader) -> Iterator[tuple[ReplicaKey, Progress]]:
    """Those that have fetched lately."""
    since_ms = core.now_ms - core.settings.observer_session_timeout_ms
    return (item for item in state.observers.items() if item[1].last_fetch_ms >= since_ms)


def note_voter_fetch(core: Core, state: Leader, progress: Progress) -> None:
    progress.knows_leader = True
    state.fetched.add(progress.key.id)
    if len(state.fetched) + core.is_voter >= core.voters.majority:
        state.fetched.clear()
        state.check_quorum_ms = core.now_ms + core.settings.check_quorum_timeout_ms


def _record_fetch(core: Core, progress: Progress, request: FetchRequest) -> None:
    log_end, offset = core.log.end_offset, request.offset
    if offset >= log_end:
        progress.caught_up_ms = core.now_ms
    elif offset >= progress.last_fetch_log_end:
        progress.caught_up_ms = max(progress.caught_up_ms, progress.previous_fetch_ms)
    progress.previous_fetch_ms = core.now_ms
    progress.last_fetch_log_end = log_end
    progress.end_offset = NO_OFFSET if request.catching_up else offset


def _is_ready(core: Core, progress: Progress, delayed: DelayedFetch) -> bool:
    return core.high_watermark > delayed.high_watermark or (
        progress.is_voter and core.log.end_offset > delayed.offset
    )


def _read_slice(core: Core, offset: int, max_bytes: int, end: int) -> FetchResponse:
    """The records from `offset` to `end`. Replicas mostly ask for the same at once, so the last
    slice is kept, and with the same high watermark the very answer."""
    state = core.state
    assert isinstance(state, Leader)
    if offset >= end:
        return _response(core, ErrorCode.NONE)
    served = state.served_slice
    if (
        served is None
        or served.offset != offset
        or served.end != end
        or len(served.records) > max_bytes
    ):
        records = core.log.read(offset, max_bytes, end=end)
        served = state.served_slice = ServedSlice(offset, end, records)
    response = served.response
    if response is None or response.high_watermark != core.high_watermark:
        response = served.response = _response(core, ErrorCode.NONE, records=served.records)
    return response


def _response(
    core: Core,
    error: ErrorCode,
    *,
    diverging: EpochOffset | None = None,
    snapshot: EpochOffset | None = None,
    records: Buffer = b"",
) -> FetchResponse:
    return FetchResponse(
        error=error,
        epoch=core.epoch,
        leader_id=core.leader_id,
        high_watermark=core.high_watermark,
        diverging=diverging,
        snapshot=snapshot,
        records=records,
        leader=core.addresses.get(core.leader_id),
    )


def _refuse(core: Core, token: int, error: ErrorCode) -> None:
    core.reply(token, _response(core, error))
