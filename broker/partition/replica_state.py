"""The progress of one follower, as its leader knows it from the follower's fetches.

A fetch at offset N says that the follower's log contains everything below N. `last_caught_up_ms` is
the latest time at which the follower had everything that the leader had. A follower that is always
slightly behind, but keeps pace, counts as caught up: each fetch is compared with the leader's end
offset at the follower's previous fetch (KAFKA-1546).

`isr_membership.py` decides from this progress if the follower joins or leaves the ISR.
"""

from __future__ import annotations

UNKNOWN_OFFSET = -1
UNKNOWN_BROKER_EPOCH = -1
"""The broker epoch of a follower that has not fetched from this leader yet, or sends none."""


class ReplicaState:
    """The progress of one follower. The event loop owns it.

    Offsets are UNKNOWN_OFFSET until the follower has fetched from this leader. Times are monotonic,
    in ms. `last_caught_up_ms` is None if the follower has never been caught up in this leader
    epoch."""

    __slots__ = (
        "_leader_end_at_fetch",
        "broker_epoch",
        "broker_id",
        "end_offset",
        "last_caught_up_ms",
        "last_fetch_ms",
        "start_offset",
    )

    def __init__(self, broker_id: int) -> None:
        self.broker_id = broker_id
        self.start_offset = UNKNOWN_OFFSET
        self.end_offset = UNKNOWN_OFFSET
        self.broker_epoch = UNKNOWN_BROKER_EPOCH
        self.last_fetch_ms = 0
        self.last_caught_up_ms: int | None = None
        self._leader_end_at_fetch = UNKNOWN_OFFSET

    def fetched(
        self,
        offset: int,
        start_offset: int,
        broker_epoch: int,
        *,
        leader_end_offset: int,
        now_ms: int,
    ) -> None:
        """Note a fetch at `offset`, when the leader's log end was `leader_end_offset`.
        `start_offset` is the follower's log start."""
        assert offset <= leader_end_offset, (offset, leader_end_offset)
        if offset >= leader_end_offset:
            self.last_caught_up_ms = now_ms
        elif offset >= self._leader_end_at_fetch >= 0 and (
            self.last_caught_up_ms is None or self.last_fetch_ms > self.last_caught_up_ms
        ):
            self.last_caught_up_ms = self.last_fetch_ms
        self.start_offset = start_offset
        self.end_offset = offset
        self.broker_epoch = broker_epoch
        self.last_fetch_ms = now_ms
        if leader_end_offset > self._leader_end_at_fetch:
            self._leader_end_at_fetch = leader_end_offset

    def seen_caught_up(self, at_ms: int) -> None:
        """Note that the follower had everything at `at_ms`."""
        if self.last_caught_up_ms is None or self.last_caught_up_ms < at_ms:
            self.last_caught_up_ms = at_ms

    def reset_for_epoch(
        self, *, new_leader: bool, in_isr: bool, leader_end_offset: int, now_ms: int
    ) -> None:
        """Begin a new leader epoch.

        Members of the ISR count as caught up now, so that they have the whole lag time to find
        their leader. `new_leader` says that another broker may have led since this leader's last
        epoch, so the follower may have truncated; its offsets are unknown then."""
        self.last_caught_up_ms = now_ms if in_isr else None
        self.last_fetch_ms = now_ms if in_isr and not new_leader else 0
        self._leader_end_at_fetch = UNKNOWN_OFFSET if new_leader else leader_end_offset
        if new_leader:
            self.start_offset = UNKNOWN_OFFSET
            self.end_offset = UNKNOWN_OFFSET
            self.broker_epoch = UNKNOWN_BROKER_EPOCH

    def caught_up(self, leader_end_offset: int, now_ms: int, lag_time_max_ms: int) -> bool:
        """Return True if the follower is at the leader's log end, or was within
        `lag_time_max_ms`."""
        return self.end_offset == leader_end_offset or (
            self.last_caught_up_ms is not None
            and now_ms - self.last_caught_up_ms <= lag_time_max_ms
        )
