"""The state of one shard on the broker that leads its partition: loading, ready or failed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from quorate.broker.groups.guarded import Guard
from quorate.broker.groups.loading import Loading
from quorate.broker.groups.replicated_journal import ReplicatedJournal
from quorate.broker.groups.shard import Shard
from quorate.quorum.protocol.errors import ErrorCode


@dataclass(slots=True, kw_only=True)
class ShardContext:
    """One partition that this broker leads, with its shard.

    The shard waits for its replica to open, or is loading, ready, or failed. Requests wait only
    while it is neither ready nor failed."""

    leader_epoch: int
    shard: Shard
    journal: ReplicatedJournal
    guard: Guard
    loading: Loading | None = None
    """The replay of the log. None before it starts and after it ends."""
    ready: bool = False
    """True when the log is replayed and all sessions are started."""
    failed: bool = False
    """True if the log could not be replayed."""
    waiting: list[WaitingRequest] = field(default_factory=list)

    def answer_waiting(self, settle: Callable[[WaitingRequest], None]) -> None:
        """Pass each waiting request to `settle`, and empty the list."""
        waiting, self.waiting = self.waiting, []
        for each in waiting:
            settle(each)


@dataclass(frozen=True, slots=True)
class WaitingRequest:
    """A request that waits for its shard: the work to do, and the function that refuses it."""

    work: Callable[[ShardContext], None]
    refuse: Callable[[ErrorCode], None]


def still_loading(waiting: WaitingRequest) -> None:
    """Refuse a waiting request with COORDINATOR_LOAD_IN_PROGRESS."""
    waiting.refuse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)


def not_coordinator(waiting: WaitingRequest) -> None:
    """Refuse a waiting request with NOT_COORDINATOR."""
    waiting.refuse(ErrorCode.NOT_COORDINATOR)
