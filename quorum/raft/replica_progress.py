"""The leader's records of its voters and observers."""

from __future__ import annotations

from collections.abc import Iterator

from quorate.quorum.ids import ReplicaKey
from quorate.quorum.raft import check_quorum
from quorate.quorum.raft.core import Core
from quorate.quorum.raft.states import Leader, Progress


def progress_of(core: Core, state: Leader, replica: ReplicaKey) -> Progress | None:
    """Return the leader's record of this replica. Return None if there are too many observers.

    An unknown replica becomes an observer. If the bound is reached, observers that have not fetched
    for `observer_session_timeout_ms` are removed first.
    """
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
        core.verify_voter_key(replica)  # reports a voter's id with another directory
        progress = state.observers[replica] = Progress(replica, False)
    return progress


def live_observers(core: Core, state: Leader) -> Iterator[tuple[ReplicaKey, Progress]]:
    """Return the observers that fetched within `observer_session_timeout_ms`."""
    since_ms = core.now_ms - core.settings.observer_session_timeout_ms
    return (item for item in state.observers.items() if item[1].last_fetch_ms >= since_ms)


def note_voter_fetch(core: Core, state: Leader, progress: Progress) -> None:
    """Note that a voter has fetched, records or a snapshot: it knows this leader, and counts for
    check quorum."""
    progress.knows_leader = True
    check_quorum.note_fetch(core, state, progress.key.id)
