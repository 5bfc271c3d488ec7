"""The leader's side of a fetch: checks, divergence, snapshots, acknowledgements (KIP-595, KIP-630).

The leader answers immediately if the fetcher's log diverges, if the fetcher needs a snapshot, or if
there is news: records for a voter, a higher high watermark for a fetcher that asked for it. Other
fetches are delayed (`delayed_fetches.py`).
"""

from __future__ import annotations

from quorate.quorum.ids import EpochOffset
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.raft import high_watermark
from quorate.quorum.raft.core import Core
from quorate.quorum.raft.delayed_fetches import (
    complete_delayed_fetch,
    fetch_response,
    refuse_fetch,
)
from quorate.quorum.raft.messages import FetchRequest, FetchSnapshotRequest, UpdateVoterRequest
from quorate.quorum.raft.replica_progress import note_voter_fetch, progress_of
from quorate.quorum.raft.states import DelayedFetch, Leader, Progress
from quorate.quorum.raft.voter_set import NO_OFFSET


def on_fetch(core: Core, token: int, request: FetchRequest) -> None:
    """Serve a fetch: refuse it, respond to it, or delay it.

    The fetch completes an earlier delayed fetch of the same replica. An offset is an
    acknowledgement only if the fetcher is a voter that is not catching up, and if its log is a
    prefix of this one. If such a log ends below the voter's last acknowledgement, the voter has
    lost records, and the fetch is refused.
    """
    is_valid = (
        request.offset >= 0
        and 0 <= request.last_fetched_epoch <= request.epoch
        and request.max_wait_ms >= 0
    )
    error = leader_refusal(core, request, is_valid=is_valid)
    if error != ErrorCode.NONE:
        refuse_fetch(core, token, error)
        return
    state = core.state
    assert isinstance(state, Leader)
    progress = progress_of(core, state, request.replica)
    if progress is None:
        refuse_fetch(core, token, ErrorCode.REQUEST_TIMED_OUT)
        return
    complete_delayed_fetch(core, progress, ErrorCode.NONE)
    progress.last_fetch_ms = core.now_ms
    if progress.is_voter:
        note_voter_fetch(core, state, progress)
    if request.catching_up:
        progress.end_offset = NO_OFFSET  # its earlier acknowledgement is void
    steps_back = progress.is_voter and request.offset < progress.end_offset
    snapshot = needed_snapshot(core, request.offset, request.last_fetched_epoch)
    if snapshot is not None and not steps_back:
        core.reply(token, fetch_response(core, ErrorCode.NONE, snapshot=snapshot))
        return
    diverging = diverging_epoch(core, request.offset, request.last_fetched_epoch)
    if diverging is not None:
        core.reply(token, fetch_response(core, ErrorCode.NONE, diverging=diverging))
        return
    if steps_back:
        reason = (
            f"voter {progress.key} fetches from offset {request.offset}, but it has acknowledged "
            f"everything below {progress.end_offset}. It lost records that count as committed "
            "(KAFKA-12181). Stop it, run `quorate storage declare --lost` there, and start it "
            "again. It then catches up before it votes"
        )
        core.report(progress.key.id, reason)
        refuse_fetch(core, token, ErrorCode.INVALID_REQUEST)
        return
    _record_fetch(core, progress, request)
    wait_offset = request.high_watermark
    if not progress.is_voter:  # an observer waits for commits only
        wait_offset = min(wait_offset, request.offset)
    delayed = DelayedFetch(
        token,
        request.offset,
        wait_offset,
        min(request.max_bytes, core.settings.fetch_max_bytes),
        core.now_ms + min(request.max_wait_ms, core.settings.fetch_max_wait_ms),
    )
    progress.delayed_fetch = delayed
    if progress.is_voter:
        high_watermark.advance(core, state)
    if progress.delayed_fetch is not delayed:
        return
    if _is_ready(core, progress, delayed):
        complete_delayed_fetch(core, progress, ErrorCode.NONE)
    elif state.delayed_fetch_ms is None or delayed.deadline_ms < state.delayed_fetch_ms:
        state.delayed_fetch_ms = delayed.deadline_ms


def diverging_epoch(core: Core, offset: int, last_fetched_epoch: int) -> EpochOffset | None:
    """Return the largest epoch of this log that is at most `last_fetched_epoch`, and its end
    offset.

    Return None if the fetcher's log is a prefix of this one.
    """
    log = core.log
    if offset == 0 and last_fetched_epoch == 0:
        return None
    if last_fetched_epoch == log.last_epoch and offset <= log.end_offset:
        return None  # the common case
    end = log.epochs.end_offset_for(last_fetched_epoch, log.end_offset) or core.log_end()
    earliest = core.snapshots.earliest
    if earliest is not None and end.offset == earliest.offset:
        end = earliest  # the log starts after this epoch
    if end.epoch == last_fetched_epoch and offset <= end.offset:
        return None
    return end


def needed_snapshot(core: Core, offset: int, last_fetched_epoch: int) -> EpochOffset | None:
    """Return the latest snapshot if there is one and the fetcher needs it, else None (KIP-630).

    A fetcher needs it if its log is empty, ends before the start of this log, or ends in an epoch
    that is older than the earliest snapshot.
    """
    latest, earliest = core.snapshots.latest, core.snapshots.earliest
    if latest is None or earliest is None:
        return None
    start_offset = core.log.start_offset
    if offset == 0 or offset < start_offset:
        return latest
    # This log does not know the epochs before its start, so it cannot find the divergence.
    is_cut_off = start_offset > 0 and last_fetched_epoch < earliest.epoch
    return latest if is_cut_off else None


def leader_refusal(
    core: Core,
    request: FetchRequest | FetchSnapshotRequest | UpdateVoterRequest,
    *,
    is_valid: bool = True,
) -> ErrorCode:
    """Return the error of a request that only the leader serves, or NONE. The checks are Kafka's,
    in Kafka's order. `is_valid` is False if the fields contradict each other."""
    if request.cluster_id != core.cluster_id:
        return ErrorCode.INCONSISTENT_CLUSTER_ID
    if not is_valid or request.replica.id < 0:
        return ErrorCode.INVALID_REQUEST
    epoch = core.election.epoch
    if request.epoch != epoch:
        stale = request.epoch < epoch
        return ErrorCode.FENCED_LEADER_EPOCH if stale else ErrorCode.UNKNOWN_LEADER_EPOCH
    return ErrorCode.NONE if isinstance(core.state, Leader) else ErrorCode.NOT_LEADER_OR_FOLLOWER


def _record_fetch(core: Core, progress: Progress, request: FetchRequest) -> None:
    """Record the acknowledgement, and the time at which the replica was caught up.

    The replica was caught up at the previous fetch if its offset reaches the log end of that
    moment.
    """
    log_end, offset = core.log.end_offset, request.offset
    if offset >= log_end:
        progress.caught_up_ms = core.now_ms
    elif offset >= progress.last_fetch_log_end:
        progress.caught_up_ms = max(progress.caught_up_ms, progress.previous_fetch_ms)
    assert request.catching_up or not progress.is_voter or progress.end_offset <= offset <= log_end
    progress.previous_fetch_ms = core.now_ms
    progress.last_fetch_log_end = log_end
    progress.end_offset = NO_OFFSET if request.catching_up else offset


def _is_ready(core: Core, progress: Progress, delayed: DelayedFetch) -> bool:
    """Return True if there is something to send in response to the fetch."""
    return core.high_watermark > delayed.high_watermark or (
        progress.is_voter and core.log.end_offset > delayed.offset
    )
