"""The leader's view of every replica, for DescribeQuorum. Times are wall-clock milliseconds."""

from __future__ import annotations

from dataclasses import dataclass

from quorate.quorum.ids import ReplicaKey
from quorate.quorum.raft.core import Core
from quorate.quorum.raft.replica_progress import live_observers
from quorate.quorum.raft.states import NOT_YET_MS, Leader, Progress

UNKNOWN = -1
"""The value of an offset or a time that the leader does not know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaDescription:
    """The state of one replica. Its values are UNKNOWN before its first fetch in this epoch.

    `log_end_offset` is the offset of its last valid fetch, or UNKNOWN if it is catching up after a
    loss. `last_caught_up_ms` is UNKNOWN until it has caught up once in this epoch."""

    replica: ReplicaKey
    log_end_offset: int
    last_fetch_ms: int
    last_caught_up_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumDescription:
    """The state of the quorum. `voters` and `observers` are sorted by replica, and the leader is in
    one of them. Observers that have not fetched for `observer_session_timeout_ms` are left out."""

    leader_id: int
    epoch: int
    high_watermark: int
    voters: tuple[ReplicaDescription, ...]
    observers: tuple[ReplicaDescription, ...]


def describe(core: Core) -> QuorumDescription | None:
    """Return the state of the quorum, or None if this node does not lead."""
    state = core.state
    if not isinstance(state, Leader):
        return None
    me = ReplicaDescription(
        replica=core.me,
        log_end_offset=core.log.end_offset,
        last_fetch_ms=core.wall_ms,
        last_caught_up_ms=core.wall_ms,
    )
    voters = [_replica(core, each) for each in state.voters.values()]
    observers = [_replica(core, each) for _, each in live_observers(core, state)]
    (voters if core.is_voter else observers).append(me)
    return QuorumDescription(
        leader_id=core.me.id,
        epoch=core.epoch,
        high_watermark=core.high_watermark,
        voters=tuple(sorted(voters, key=lambda each: each.replica)),
        observers=tuple(sorted(observers, key=lambda each: each.replica)),
    )


def _replica(core: Core, progress: Progress) -> ReplicaDescription:
    def wall_ms(time_ms: int) -> int:
        return UNKNOWN if time_ms == NOT_YET_MS else time_ms + core.wall_offset_ms

    return ReplicaDescription(
        replica=progress.key,
        log_end_offset=progress.end_offset,
        last_fetch_ms=wall_ms(progress.last_fetch_ms),
        last_caught_up_ms=wall_ms(progress.caught_up_ms),
    )
