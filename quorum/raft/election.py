"""The one durable fact of consensus: epoch, vote, leader, and which directory each voter has.

It is written as a whole, in one file replacement (R2), before anything that rests on it is said.
"""

from __future__ import annotations

from dataclasses import dataclass

from quorate.quorum.ids import NO_NODE, ReplicaKey


@dataclass(frozen=True, slots=True)
class Election:
    epoch: int = 0
    voted: ReplicaKey | None = None
    leader_id: int = NO_NODE
    pinned: tuple[ReplicaKey, ...] = ()
    """Voters whose directory id is known, sorted by id: another directory is another replica."""
