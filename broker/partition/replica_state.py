"""What a leader knows of one follower: it is all told by the follower's own fetches.

A fetch at offset N says that everything below N is in the follower's log. `last_caught_up_ms` is
the latest time at which the follower had all that the leader had; a follower that is always a
little behind but keeps pace stays caught up, because each fetch is compared with the leader's end
offset at the previous one (KAFKA-1546).
"""

from __future__ import annotations

UNKNOWN_OFFSET = -1
UNKNOWN_BROKER_EPOCH = -1


class ReplicaState:
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
        if self.last_caught_up_ms is None or self.last_caught_up_ms < at_ms:
            self.last_caught_up_ms = at_ms

    def reset_for_epoch(
        self, *, new_leader: bool, in_isr: bool, leader_end_offset: int, now_ms: int
    ) -> None:
        """A new leader epoch began. ISR members count as caught up now, so that they get the whole
        lag time to find their leader. What a former leadership knew is void."""
        self.last_caught_up_ms = now_ms if in_isr else None
        self.last_fetch_ms = now_ms if in_isr and not new_leader else 0
        self._leader_end_at_fetch = UNKNOWN_OFFSET if new_leader else leader_end_offset
        if new_leader:
            self.start_offset = UNKNOWN_OFFSET
            self.end_offset = UNKNOWN_OFFSET
            self.broker_epoch = UNKNOWN_BROKER_EPOCH

    def caught_up(self, leader_end_offset: int, now_ms: int, lag_time_max_ms: int) -> bool:
        return self.end_offset == leader_end_offset or (
            self.last_caught_up_ms is not None
            and now_ms - self.last_caught_up_ms <= lag_time_max_ms
        )
