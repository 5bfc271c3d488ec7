"""The rule by which the leader raises the high watermark (Raft 5.3 and 5.4.2).

An offset is committed if a majority of the voters has flushed everything below it, and if it is
beyond the start of the leader's own epoch. A record of an older epoch can be lost to another leader
even if a majority has it (Figure 8; R19 in tests/scenarios). A leader whose removal is in its log
does not count itself.
"""

from __future__ import annotations

from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.raft.core import Core
from quorate.quorum.raft.delayed_fetches import complete_delayed_fetch
from quorate.quorum.raft.states import Leader
from quorate.quorum.raft.voter_set import majority_offset


def advance(core: Core, state: Leader) -> None:
    """Raise the high watermark if the rule allows it, and respond to the fetches that wait for
    that."""
    offsets = [progress.end_offset for progress in state.voters.values()]
    if core.is_voter:  # a removed leader does not count itself (KAFKA-16530)
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
