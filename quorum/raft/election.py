"""The durable election of one node: epoch, vote, leader and the voters' directory ids.

One file replacement writes all of it, because a crash between two writes could leave the vote of
one epoch with another epoch (R2 in tests/scenarios). The election is durable before a message that
rests on it leaves the node. `election_file.py` has the files.
"""

from __future__ import annotations

from dataclasses import dataclass

from quorate.quorum.ids import NO_NODE, ReplicaKey


@dataclass(frozen=True, slots=True)
class Election:
    """The election as the disk holds it. `voted` is the candidate that got this node's vote in
    `epoch`, or None. `leader_id` is the leader of `epoch`, or NO_NODE if none is known."""

    epoch: int = 0
    voted: ReplicaKey | None = None
    leader_id: int = NO_NODE
    pinned: tuple[ReplicaKey, ...] = ()
    """The voters whose directory id is known, sorted by id. A voter's id with another directory is
    another replica."""
