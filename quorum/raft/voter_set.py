"""The set of voters, and majorities of it.

A voter that was configured by id has no known directory id until another node names it. From then
on the directory id is pinned. The same id with another directory is not a voter, because a voter
whose disk was wiped could vote twice in an epoch (KIP-853).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from quorate.quorum.ids import ZERO_UUID, ReplicaKey, Uuid

NO_OFFSET = -1
"""The offset of a voter that has acknowledged nothing."""


class VoterSet:
    """An immutable set of voters. Its ids are sorted. `majority` is the size of a majority."""

    __slots__ = ("_directories", "ids", "majority")

    def __init__(self, voters: Iterable[ReplicaKey]) -> None:
        self._directories: dict[int, Uuid] = {
            voter.id: voter.directory_id for voter in sorted(voters)
        }
        self.ids = tuple(self._directories)
        self.majority = len(self.ids) // 2 + 1

    def __contains__(self, replica: ReplicaKey) -> bool:
        """Return True if `replica` is a voter, or may be because one of the directory ids is
        unknown."""
        known = self._directories.get(replica.id)
        return known is not None and (
            known == replica.directory_id or ZERO_UUID in (known, replica.directory_id)
        )

    def key(self, voter_id: int) -> ReplicaKey:
        """Return the voter's id and directory id. Raise KeyError if it is not a voter."""
        return ReplicaKey(voter_id, self._directories[voter_id])

    def keys(self) -> tuple[ReplicaKey, ...]:
        """Return all voters, sorted by id."""
        return tuple(ReplicaKey(*item) for item in self._directories.items())

    def is_impostor(self, replica: ReplicaKey) -> bool:
        """Return True if `replica` has the id of a voter but another directory id."""
        return replica.id in self._directories and replica not in self

    def can_pin(self, replica: ReplicaKey) -> bool:
        """Return True if `replica` names the directory id of a voter whose directory id is
        unknown."""
        return self._directories.get(replica.id) == ZERO_UUID and replica.directory_id != ZERO_UUID

    def pin(self, replica: ReplicaKey) -> VoterSet:
        """Return the set with the directory id of `replica`, or this set if it adds nothing."""
        if not self.can_pin(replica):
            return self
        return VoterSet((*(key for key in self.keys() if key.id != replica.id), replica))

    def pinned(self) -> tuple[ReplicaKey, ...]:
        """Return the voters whose directory id is known."""
        return tuple(key for key in self.keys() if key.directory_id != ZERO_UUID)

    def others(self, me: int) -> tuple[int, ...]:
        """Return the ids of all voters except `me`."""
        return tuple(voter_id for voter_id in self.ids if voter_id != me)


def majority_offset(offsets: Sequence[int]) -> int:
    """Return the largest offset that a majority has reached.

    `offsets` has one entry for each voter, NO_OFFSET for a voter that has acknowledged nothing.
    """
    return sorted(offsets, reverse=True)[len(offsets) // 2]
