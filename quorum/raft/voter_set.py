"""The voter set: who counts, and the arithmetic of majorities.

A voter that was configured by id only has no directory id until it is met; from then on it is
pinned, and the same id with another directory is not a voter (a wiped disk could vote twice;
KIP-853).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from quorate.quorum.ids import ZERO_UUID, ReplicaKey, Uuid

NO_OFFSET = -1


class VoterSet:
    __slots__ = ("_directories", "ids", "majority")

    def __init__(self, voters: Iterable[ReplicaKey]) -> None:
        self._directories: dict[int, Uuid] = {
            voter.id: voter.directory_id for voter in sorted(voters)
        }
        self.ids = tuple(self._directories)
        self.majority = len(self.ids) // 2 + 1

    def __contains__(self, replica: ReplicaKey) -> bool:
        """Also true while either directory id is unknown."""
        known = self._directories.get(replica.id)
        return known is not None and (
            known == replica.directory_id or ZERO_UUID in (known, replica.directory_id)
        )

    def key(self, voter_id: int) -> ReplicaKey:
        return ReplicaKey(voter_id, self._directories[voter_id])

    def keys(self) -> tuple[ReplicaKey, ...]:
        return tuple(ReplicaKey(*item) for item in self._directories.items())

    def is_impostor(self, replica: ReplicaKey) -> bool:
        """A voter's id with another directory than that voter's."""
        return replica.id in self._directories and replica not in self

    def can_pin(self, replica: ReplicaKey) -> bool:
        return self._directories.get(replica.id) == ZERO_UUID and replica.directory_id != ZERO_UUID

    def pin(self, replica: ReplicaKey) -> VoterSet:
        """The set that knows `replica`'s directory, when it is a voter whose was unknown."""
        if not self.can_pin(replica):
            return self
        return VoterSet((*(key for key in self.keys() if key.id != replica.id), replica))

    def pinned(self) -> tuple[ReplicaKey, ...]:
        return tuple(key for key in self.keys() if key.directory_id != ZERO_UUID)

    def others(self, me: int) -> tuple[int, ...]:
        return tuple(voter_id for voter_id in self.ids if voter_id != me)


def majority_offset(offsets: Sequence[int]) -> int:
    """The greatest offset that a majority has reached: one entry per voter, NO_OFFSET if none."""
    return sorted(offsets, reverse=True)[len(offsets) // 2]
