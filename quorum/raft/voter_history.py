"""The voters and the kraft.version at each offset of the log (KIP-853).

A voter set is in effect as soon as its record is appended, before the record is committed. If the
record is truncated, the previous set is in effect again. At kraft.version 0, the voters are those
in the node's configuration.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from quorate.quorum.ids import ReplicaKey
from quorate.quorum.raft.control_records import (
    ControlRecord,
    KRaftVersionRecord,
    Voter,
    VotersRecord,
)
from quorate.quorum.raft.messages import LeaderAddress


@dataclass(frozen=True, slots=True)
class QuorumVoters:
    """The voters according to the log. At kraft.version 0 `voters` is empty, and the voters in the
    node's configuration are in effect. The leader appends the KRaftVersionRecord of an upgrade
    together with the VotersRecord that follows it."""

    kraft_version: int = 0
    voters: tuple[Voter, ...] = ()

    def records(self) -> list[ControlRecord]:
        """Return the control records that store this set in a snapshot. There are none at
        kraft.version 0."""
        if self.kraft_version == 0:
            return []
        return [
            KRaftVersionRecord(version=0, k_raft_version=self.kraft_version),
            VotersRecord(version=0, voters=self.voters),
        ]

    def after(self, record: ControlRecord) -> QuorumVoters:
        """Return the voters after this record. Only a VotersRecord or a KRaftVersionRecord changes
        them."""
        match record:
            case KRaftVersionRecord():
                return replace(self, kraft_version=record.k_raft_version)
            case VotersRecord():
                return replace(self, voters=record.voters)
            case _:
                return self


STATIC_VOTERS = QuorumVoters()
"""kraft.version 0: the voters in the node's configuration are in effect."""


def key_of(voter: Voter) -> ReplicaKey:
    """Return the id and the directory id of a voter."""
    return ReplicaKey(voter.voter_id, voter.voter_directory_id)


def voters_of(records: Iterable[ControlRecord]) -> QuorumVoters:
    """Return the voters after all these records."""
    quorum = QuorumVoters()
    for record in records:
        quorum = quorum.after(record)
    return quorum


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """The voters and addresses that a node knows when it starts."""

    configured: tuple[ReplicaKey, ...]
    """The voters in controller.quorum.voters, which are in effect at kraft.version 0."""
    history: VoterHistory
    """The voters according to the log, which are in effect from kraft.version 1 on."""
    addresses: Mapping[int, LeaderAddress] = field(default_factory=dict)
    """The addresses of the configured voters."""
    bootstrap_ids: tuple[int, ...] = ()
    """Negative ids of controller.quorum.bootstrap.servers. Each may be any node of the quorum."""
    own_voter: Voter | None = None
    """The entry with which this controller would be in the voter set. None for a broker."""


class VoterHistory:
    """The voters at each offset of the log.

    The first entry, at offset -1, is the base: the set before all records that `append` stored. It
    comes from a snapshot, from `storage format`, or from the configuration. `base_in_log` is True
    if it comes from a snapshot. Each later entry is the set after one record that `append` stored.
    Invariant: the offsets of the entries increase strictly.
    """

    def __init__(self, base: QuorumVoters | None = None, *, in_log: bool = False) -> None:
        """Start with the set `base`, or with STATIC_VOTERS. `in_log` is True if a snapshot of the
        log holds it. If it is False, the next leader appends the set to the log (leader.py).
        kraft.version 0 needs no such record."""
        base = STATIC_VOTERS if base is None else base
        self.base_in_log = in_log
        self._offsets = [-1]
        self._entries = [base]

    @property
    def latest(self) -> QuorumVoters:
        """The voters of the last entry, committed or not."""
        return self._entries[-1]

    @property
    def previous(self) -> QuorumVoters:
        """The voters of the entry before the last one, or STATIC_VOTERS if there is only the
        base."""
        return self._entries[-2] if len(self._entries) > 1 else STATIC_VOTERS

    @property
    def latest_offset(self) -> int:
        """The offset of the last entry, or -1 if there is only the base."""
        return self._offsets[-1]

    def append(self, offset: int, record: ControlRecord) -> bool:
        """Apply a record that was appended at `offset`, which is above that of the last entry.

        Return True if the history has a new entry. Every VotersRecord makes one, even if it repeats
        the present set. A KRaftVersionRecord makes one only if it changes the version."""
        quorum = self.latest.after(record)
        if quorum == self.latest and not isinstance(record, VotersRecord):
            return False
        assert offset > self._offsets[-1], f"voters at {offset} after {self._offsets[-1]}"
        self._offsets.append(offset)
        self._entries.append(quorum)
        return True

    def at(self, end_offset: int) -> QuorumVoters:
        """Return the voters according to all records below `end_offset`, which is at least 0."""
        return self._entries[bisect_left(self._offsets, end_offset) - 1]

    def truncate_to(self, end_offset: int) -> bool:
        """Remove the entries at `end_offset` and above it. Return True if there were any. The base
        stays, because `end_offset` is at least 0."""
        keep = bisect_left(self._offsets, end_offset)
        changed = keep < len(self._offsets)
        del self._offsets[keep:], self._entries[keep:]
        return changed

    def reset(self, base: QuorumVoters) -> None:
        """Replace all entries by `base`, the set of a snapshot that has replaced the log, and set
        `base_in_log`."""
        self._offsets, self._entries = [-1], [base]
        self.base_in_log = True
