"""Which voters, at which kraft.version, the log says hold at which of its offsets (KIP-853).

A set holds from where it is appended, committed or not; when its record is truncated the one
before it holds again. Before any record says otherwise the configured voters do: kraft.version 0.
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
    """`voters` is empty at kraft.version 0: the set stands in the configuration."""

    kraft_version: int = 0
    voters: tuple[Voter, ...] = ()

    def records(self) -> list[ControlRecord]:
        """What says it again, at the head of a snapshot."""
        if self.kraft_version == 0:
            return []
        return [
            KRaftVersionRecord(version=0, k_raft_version=self.kraft_version),
            VotersRecord(version=0, voters=self.voters),
        ]

    def after(self, record: ControlRecord) -> QuorumVoters:
        match record:
            case KRaftVersionRecord():
                return replace(self, kraft_version=record.k_raft_version)
            case VotersRecord():
                return replace(self, voters=record.voters)
            case _:
                return self


STATIC_VOTERS = QuorumVoters()


def key_of(voter: Voter) -> ReplicaKey:
    return ReplicaKey(voter.voter_id, voter.voter_directory_id)


def voters_of(records: Iterable[ControlRecord]) -> QuorumVoters:
    quorum = QuorumVoters()
    for record in records:
        quorum = quorum.after(record)
    return quorum


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """What a node knows of who votes when it starts."""

    configured: tuple[ReplicaKey, ...]
    """controller.quorum.voters, in force at kraft.version 0."""
    history: VoterHistory
    addresses: Mapping[int, LeaderAddress] = field(default_factory=dict)
    """Of the configured voters."""
    bootstrap_ids: tuple[int, ...] = ()
    """Negative ids of controller.quorum.bootstrap.servers, which may be any node of the quorum."""
    own_voter: Voter | None = None
    """A controller's description of itself, as the set should have it."""


class VoterHistory:
    """Invariant: offsets rise strictly; the first entry holds from the beginning on."""

    def __init__(self, base: QuorumVoters | None = None, *, in_log: bool = False) -> None:
        """`in_log`: a snapshot of the log says so; else only `storage format` does."""
        base = STATIC_VOTERS if base is None else base
        self.base_in_log = in_log
        self._offsets = [-1]
        self._entries = [base]

    @property
    def latest(self) -> QuorumVoters:
        return self._entries[-1]

    @property
    def previous(self) -> QuorumVoters:
        return self._entries[-2] if len(self._entries) > 1 else STATIC_VOTERS

    @property
    def latest_offset(self) -> int:
        """Of the record that said so; -1 when a snapshot or the configuration did."""
        return self._offsets[-1]

    def append(self, offset: int, record: ControlRecord) -> bool:
        """True when another set holds from here on."""
        quorum = self.latest.after(record)
        if quorum == self.latest and not isinstance(record, VotersRecord):
            return False
        self._offsets.append(offset)
        self._entries.append(quorum)
        return True

    def at(self, end_offset: int) -> QuorumVoters:
        """As all records below `end_offset` have it."""
        return self._entries[bisect_left(self._offsets, end_offset) - 1]

    def truncate_to(self, end_offset: int) -> bool:
        """True when another set holds again."""
        keep = bisect_left(self._offsets, end_offset)
        changed = keep < len(self._offsets)
        del self._offsets[keep:], self._entries[keep:]
        return changed

    def reset(self, base: QuorumVoters) -> None:
        """A snapshot replaced everything."""
        self._offsets, self._entries = [-1], [base]
        self.base_in_log = True
