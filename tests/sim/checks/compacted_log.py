"""The one history of the records of a compacted partition. Each replica has a part of them.

A cleaner removes records, on each replica at another time, and rewrites the rest of a batch. The
check therefore compares records, not batches. Invariants: a record never changes, its offset never
changes, and a replica has the latest record of each key, unless this is a tombstone.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from quorate.quorum.log.batches.batch import batches, records_of
from quorate.quorum.log.batches.record import Record
from quorate.quorum.seams import Buffer
from tests.sim.checks.committed_log import CommittedLog, Violation


class Keyed(NamedTuple):
    """The key and the value of a record. The value of a tombstone is None."""

    key: bytes
    value: bytes | None


def keyed(record: Record) -> Keyed:
    value = None if record.value is None else bytes(record.value)
    return Keyed(bytes(record.key or b""), value)


class CompactedLog(CommittedLog):
    """The history of one compacted partition. `records` has all records that were ever seen
    committed, by offset. `latest` has the offset of the last record of each key."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.records: dict[int, Keyed] = {}
        self.latest: dict[bytes, int] = {}

    def holds(self, who: str, data: Buffer, below: int) -> int:
        """Check batches that the node `who` considers committed, as far as they end at or before
        `below`. Return the offset after the last one, or -1 if there is none."""
        next_offset = -1
        last = -1
        for position, header in batches(data):
            if header.next_offset > below:
                break
            for record in records_of(data, position, header):
                if record.offset <= last:
                    raise Violation(f"{self.name}: {who} has {record.offset} after {last}")
                last = record.offset
                self._see(who, record.offset, keyed(record))
            next_offset = header.next_offset
        return next_offset

    def _see(self, who: str, offset: int, found: Keyed) -> None:
        known = self.records.setdefault(offset, found)
        if known != found:
            raise Violation(f"{self.name}: {who} has {found} at {offset}, others had {known}")
        if offset > self.latest.get(found.key, -1):
            self.latest[found.key] = offset

    def left_over(self, offsets: Iterable[int], below: int) -> str:
        """Return the fault of a replica that is cleaned up to `below` and has two records of a key
        there, or "". `offsets` are those of its records, in order."""
        last: dict[bytes, int] = {}
        for offset in offsets:
            found = self.records.get(offset)
            if found is None or offset >= below:
                continue
            if found.key in last:
                return (
                    f"{self.name} is cleaned up to {below}, and still has {found.key!r} at "
                    f"{last[found.key]} and at {offset}"
                )
            last[found.key] = offset
        return ""

    def missing(self, offsets: Iterable[int], end: int, start: int = 0) -> str:
        """Return the fault of a replica that has records at `offsets` only, or "". It must have the
        latest record of each key from `start` to `end`, except for tombstones."""
        found = frozenset(offsets)
        for key, offset in self.latest.items():
            tombstone = self.records[offset].value is None
            if start <= offset < end and not tombstone and offset not in found:
                return f"{self.name}: the latest record of {key!r}, at {offset}, is missing"
        return ""
