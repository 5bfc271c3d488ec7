"""Random deadlines of elections, so that two voters seldom start one at the same time."""

from __future__ import annotations

from quorate.quorum.raft.core import Core
from quorate.quorum.raft.settings import HINT_DELAY_MAX_MS


def election_deadline_ms(core: Core) -> int:
    """Return a random deadline between one and two election timeouts from now."""
    timeout_ms = core.settings.election_timeout_ms
    return core.now_ms + timeout_ms + core.random.randrange(0, timeout_ms)


def hint_deadline_ms(core: Core) -> int:
    """Return a random deadline within HINT_DELAY_MAX_MS from now.

    Each voter draws from a slot of its own. Two voters that saw the same hint therefore seldom
    campaign at the same time. With the leader dead, their tie would elect no leader.
    """
    slot_ms = HINT_DELAY_MAX_MS // len(core.voters.ids)
    rank = core.voters.ids.index(core.me.id) if core.is_voter else 0
    return core.now_ms + rank * slot_ms + core.random.randrange(0, max(1, slot_ms // 2))
