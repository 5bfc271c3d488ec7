"""The offset at which a follower truncates its log, so that it is a prefix of its leader's log.

The logs are compared by leader epochs (KIP-101, KIP-279), never by the high watermark. The high
watermark lags, and truncating to it loses acknowledged records (R53 in tests/scenarios). Several
rounds may be needed; each one removes at least one epoch.
"""

from __future__ import annotations

from typing import Protocol

from quorate.quorum.ids import EpochOffset


class Epochs(Protocol):
    """The leader epochs of a log."""

    def end_offset_for(self, epoch: int, log_end: int) -> EpochOffset | None:
        """Return the largest epoch of the log that is not above `epoch`, and its end offset.

        If all epochs of the log are above `epoch`, return `epoch` itself and the offset at which
        the first one starts. Return None if `epoch` is above the latest epoch of the log, or -1."""
        ...


def truncation_offset(leader: EpochOffset, epochs: Epochs, end_offset: int) -> int:
    """Return the offset to which a follower truncates. It may lie below the follower's log start.

    `leader` is the diverging epoch of the leader's answer: the largest epoch of the leader's log
    that is not above the follower's last one, and its end offset in the leader's log. `epochs` and
    `end_offset` are the follower's."""
    own = epochs.end_offset_for(leader.epoch, end_offset)
    if own is None:
        return min(leader.offset, end_offset)
    if own.epoch != leader.epoch:
        # The follower never had that epoch, so its records above the next smaller epoch differ
        # from the leader's. The next fetch finds any further divergence (KIP-279).
        return min(own.offset, end_offset)
    return min(own.offset, leader.offset, end_offset)


def diverging_epoch(
    last_fetched_epoch: int, fetch_offset: int, end_of_epoch: EpochOffset
) -> EpochOffset | None:
    """Return the epoch and offset at which a follower diverges, or None if its log is a prefix of
    the leader's.

    `end_of_epoch` is the answer of the leader's own epochs for the follower's last epoch."""
    if end_of_epoch.epoch < last_fetched_epoch or end_of_epoch.offset < fetch_offset:
        return end_of_epoch
    return None
