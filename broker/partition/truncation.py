"""Where a follower cuts its log so that it is a prefix of its leader's (KIP-101, KIP-279).

By leader epochs, never by the high watermark: the watermark lags, and cutting there loses records
that were acknowledged (R53). The answer may have to be approached in several rounds, each of which
cuts at least one epoch.
"""

from __future__ import annotations

from typing import Protocol

from quorate.quorum.ids import EpochOffset


class Epochs(Protocol):
    def end_offset_for(self, epoch: int) -> EpochOffset | None: ...


def truncation_offset(leader: EpochOffset, epochs: Epochs, end_offset: int) -> int:
    """`leader` is the diverging epoch answered: the largest epoch the leader has that is not above
    the follower's last fetched one, and the leader's end offset of it."""
    own = epochs.end_offset_for(leader.epoch)
    if own is None:
        return min(leader.offset, end_offset)
    if own.epoch != leader.epoch:
        # The follower never had that epoch: all it has above the next smaller one is not the
        # leader's. Asking again from there finds the rest (KIP-279).
        return min(own.offset, end_offset)
    return min(own.offset, leader.offset, end_offset)


def diverging_epoch(
    last_fetched_epoch: int, fetch_offset: int, end_of_epoch: EpochOffset
) -> EpochOffset | None:
    """The leader's side: `end_of_epoch` is its own answer for the follower's last fetched epoch."""
    if end_of_epoch.epoch < last_fetched_epoch or end_of_epoch.offset < fetch_offset:
        return end_of_epoch
    return None
