"""One member of a group, and the timers of members."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from quorate.broker.groups.member_memory import MEMBER_BYTES
from quorate.broker.groups.reply import Reply
from quorate.quorum.protocol.schemas.group_membership import JoinGroupRequest
from quorate.quorum.seams import Timer


@dataclass(slots=True, kw_only=True)
class Member:
    """One member of a group.

    `protocols` maps protocol names to metadata, in the member's order of preference. `join` and
    `sync` are the unanswered JoinGroup and SyncGroup requests of the member, at most one each."""

    id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: Mapping[str, bytes]
    assignment: bytes = b""
    new: bool = False
    """True from the first join until the join phase completes."""
    join: Reply | None = None
    sync: Reply | None = None
    session: Timer | None = None
    """The timer that removes the member if it sends no heartbeat."""

    @property
    def held_bytes(self) -> int:
        """Return the bytes that count for this member (`member_memory.py`)."""
        return (
            MEMBER_BYTES
            + 2 * len(self.id)
            + len(self.instance_id or "")
            + len(self.client_id)
            + len(self.assignment)
            + size_of(self.protocols)
        )

    @property
    def keeps_session(self) -> bool:
        """Return True if the member's session must not expire now.

        A member that waits for a response cannot heartbeat, so its session is kept. The exception
        is a new member, which must be removed eventually if its client has gone away.
        """
        return not self.new and (self.join is not None or self.sync is not None)

    def vote(self, candidates: Iterable[str]) -> str:
        """Return the member's most preferred protocol among the candidates."""
        wanted = set(candidates)
        return next(name for name in self.protocols if name in wanted)


def protocols_of(request: JoinGroupRequest) -> dict[str, bytes]:
    """Return the protocols of a JoinGroup request with their metadata, in order of preference."""
    return {each.name: bytes(each.metadata) for each in request.protocols}


def size_of(protocols: Mapping[str, bytes]) -> int:
    """Return the bytes that count for protocols and their metadata."""
    return sum(len(name) + len(metadata) for name, metadata in protocols.items())


def cancel(timer: Timer | None) -> None:
    """Cancel the timer if there is one."""
    if timer is not None:
        timer.cancel()
