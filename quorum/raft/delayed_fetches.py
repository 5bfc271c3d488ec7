"""Fetch requests that wait at the leader, and their responses.

A fetch waits for new records, for a higher high watermark, or for its deadline. Each replica has at
most one delayed fetch. A voter receives all records of the log. An observer receives committed
records only, so the records and their commit arrive in one response, and it never has to truncate
what it received as an observer.
"""

from __future__ import annotations

from dataclasses import replace

from quorate.quorum.ids import EpochOffset
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.raft import effects
from quorate.quorum.raft.core import Core
from quorate.quorum.raft.messages import FetchResponse
from quorate.quorum.raft.states import Leader, Progress, ServedSlice, State
from quorate.quorum.seams import Buffer

LEADERSHIP_LOST = (
    "leadership was lost before the change was committed. The change may still take effect: check "
    "the voters before you try again"
)
"""The error message if the outcome of a voter change is unknown. The simulation recognizes it."""


def complete_delayed_fetch(core: Core, progress: Progress, error: ErrorCode) -> None:
    """Respond to the replica's delayed fetch, if it has one, with records or with `error`."""
    delayed = progress.delayed_fetch
    if delayed is None:
        return
    progress.delayed_fetch = None
    if error != ErrorCode.NONE:
        refuse_fetch(core, delayed.token, error)
        return
    end = core.log.end_offset if progress.is_voter else core.high_watermark
    response = _read_slice(core, delayed.offset, delayed.max_bytes, end)
    if core.voters.is_impostor(progress.key):
        response = replace(response, replaced_voter=core.voters.key(progress.key.id))
    core.reply(delayed.token, response)


def complete_voter_fetches(core: Core, state: Leader) -> None:
    """Respond to the delayed fetches of all voters with the records that were just appended."""
    for progress in state.voters.values():
        if progress.delayed_fetch is not None:
            complete_delayed_fetch(core, progress, ErrorCode.NONE)


def expire_delayed_fetches(core: Core, state: Leader) -> None:
    """Respond to the fetches whose deadline has passed."""
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
    """Answer all delayed fetches and the pending voter change with an error if `old` is the role of
    a leader.

    Without that, the fetchers would find the new leader only after their timeout (R25 in
    tests/scenarios).
    """
    if isinstance(old, Leader):
        for progress in (*old.voters.values(), *old.observers.values()):
            complete_delayed_fetch(core, progress, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if old.change is not None:
            token = old.change.token
            core.emit(
                effects.VoterChangeResult(token, ErrorCode.REQUEST_TIMED_OUT, LEADERSHIP_LOST)
            )


def fetch_response(
    core: Core,
    error: ErrorCode,
    *,
    diverging: EpochOffset | None = None,
    snapshot: EpochOffset | None = None,
    records: Buffer = b"",
) -> FetchResponse:
    """Return a response with this node's epoch, leader and high watermark."""
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


def refuse_fetch(core: Core, token: int, error: ErrorCode) -> None:
    """Respond to a fetch with `error`."""
    core.reply(token, fetch_response(core, error))


def _read_slice(core: Core, offset: int, max_bytes: int, end: int) -> FetchResponse:
    """Return a response with the records from `offset` to at most `end`.

    Replicas mostly ask for the same records at the same time. The leader therefore keeps the last
    slice, and its response while the high watermark stays the same.
    """
    state = core.state
    assert isinstance(state, Leader)
    if offset >= end:
        return fetch_response(core, ErrorCode.NONE)
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
        response = served.response = fetch_response(core, ErrorCode.NONE, records=served.records)
    return response
