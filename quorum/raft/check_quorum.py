"""Check quorum: a leader resigns if no majority of the voters fetches from it in time.

Another node may then lead a later epoch already (KIP-595, KAFKA-15489). The timeout is
`RaftSettings.check_quorum_timeout_ms`, 1.5 times the fetch timeout. It restarts as soon as a
majority of the voters has fetched since the last restart. The leader counts as one of them unless
its removal is in its log. A fetch of a snapshot counts, too. `leader.py` resigns when the timeout
has expired.
"""

from __future__ import annotations

from quorate.quorum.raft.core import Core
from quorate.quorum.raft.states import Leader


def note_fetch(core: Core, state: Leader, voter_id: int) -> None:
    """Note a fetch of a voter. If a majority has fetched, this node included, restart the
    timeout."""
    state.fetched.add(voter_id)
    if len(state.fetched) + core.is_voter >= core.voters.majority:
        state.fetched.clear()
        state.check_quorum_ms = core.now_ms + core.settings.check_quorum_timeout_ms


def has_expired(core: Core, state: Leader) -> bool:
    """Return True if no majority of the voters has fetched within the timeout. A leader that is the
    only voter has no timeout."""
    return state.check_quorum_ms is not None and core.now_ms >= state.check_quorum_ms
