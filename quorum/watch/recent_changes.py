"""The newest changes of partitions that this controller decided, with the times of their request
and of their append.

The controller adds one entry per batch part and keeps the records, which exist anyway. All other
work is done by the reader. A change that is committed later, or replayed, needs no update here,
because the marks of these stages give the times by offset (`stage_marks.py`).
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass

from quorate.quorum.metadata.records import (
    NO_LEADER,
    NO_LEADER_CHANGE,
    RECOVERING,
    MetadataRecord,
    PartitionChangeRecord,
)

MAX_CHANGES = 5_000
"""Maximum number of records in all entries together. The oldest entries are removed first."""


# Not frozen: one is made for every part of a batch that changes partitions.
@dataclass(slots=True)
class DecidedChanges:
    """Consecutive records of one batch, not all of which change a partition.

    `requested_ms` and `appended_ms` are monotonic times. A change that no request caused has the
    time of its decision as `requested_ms`."""

    first_offset: int
    records: Sequence[MetadataRecord]
    requested_ms: int
    appended_ms: int = 0


class RecentChanges:
    """The newest decided changes of one controller, in the order of the log. The node's event loop
    owns it."""

    def __init__(self) -> None:
        self._entries: deque[DecidedChanges] = deque()
        self._kept = 0
        self.leader_changes: Counter[tuple[str, str]] = Counter()
        """The number of appended changes of leaders, by kind (`leader_change`) and cause."""

    @property
    def kept(self) -> int:
        """Return the number of records in all entries."""
        return self._kept

    def appended(self, entries: Sequence[DecidedChanges], now_ms: int) -> None:
        """Add the entries of a batch that was appended at `now_ms`, without those that only create
        topics or partitions. Their offsets must be above those of all kept entries."""
        for each in entries:
            records = each.records
            if type(records[0]) is not PartitionChangeRecord and not any(
                type(record) is PartitionChangeRecord for record in records
            ):
                continue
            each.appended_ms = now_ms
            for record in records:
                kind = leader_change(record)
                if kind is not None and isinstance(record, PartitionChangeRecord):
                    self.leader_changes[kind, record.cause or "unknown"] += 1
            over = len(each.records) - MAX_CHANGES
            if over > 0:
                each.first_offset += over
                each.records = each.records[over:]
            self._entries.append(each)
            self._kept += len(each.records)
        while self._kept > MAX_CHANGES:
            self._kept -= len(self._entries.popleft().records)

    def discard_from(self, end_offset: int) -> None:
        """Remove the entries that are not wholly below `end_offset`, because another leader may
        write other records at their offsets."""
        entries = self._entries
        while entries and entries[-1].first_offset + len(entries[-1].records) > end_offset:
            self._kept -= len(entries.pop().records)

    def since(self, offset: int) -> list[DecidedChanges]:
        """Return the entries that hold a record at `offset` or above."""
        return [each for each in self._entries if each.first_offset + len(each.records) > offset]


def leader_change(record: MetadataRecord) -> str | None:
    """Return the kind of a change of a partition's leader: clean, unclean (the leader may lack
    committed records), or lost (no leader is left). Return None if `record` names no leader."""
    if not isinstance(record, PartitionChangeRecord) or record.leader == NO_LEADER_CHANGE:
        return None
    if record.leader == NO_LEADER:
        return "lost"
    return "unclean" if record.leader_recovery_state == RECOVERING else "clean"


def is_reported(record: MetadataRecord) -> bool:
    """Return True if `record` changes the leader, the ISR or the replicas of a partition."""
    return isinstance(record, PartitionChangeRecord) and (
        record.leader != NO_LEADER_CHANGE
        or record.isr is not None
        or record.replicas is not None
        or record.adding_replicas is not None
        or record.removing_replicas is not None
    )
