"""Log Matching (Raft, section 5.3), compared between every two replicas of a log.

If two logs have a batch with the same offset and leader epoch, then this batch and everything
before it are the same. The check reads the files of running nodes, committed or not. It compares
each batch, and the batch before it, with what any other replica had at that offset and epoch. By
induction this compares the whole logs. The cost grows with new batches only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from quorate.quorum.ids import METADATA_TOPIC
from quorate.quorum.log.batches.batch import BatchHeader, batches, read_header
from quorate.quorum.log.files.errors import CorruptBatch
from quorate.quorum.log.files.names import LOG_SUFFIX, offset_of
from quorate.quorum.log.log import Log
from tests.sim.checks.watermarks import hosted_by
from tests.sim.world.cluster import Machine, SimCluster
from tests.sim.world.disk import SimDisk


class Entry(NamedTuple):
    """The identity of a batch in all logs: its place, its end and its CRC."""

    offset: int
    epoch: int
    next_offset: int
    crc: int


@dataclass(slots=True)
class Known:
    entry: Entry
    before: Entry | None
    holders: dict[str, None] = field(default_factory=dict)


@dataclass(slots=True)
class Position:
    """The last batch that was read of one log of one machine."""

    log: object
    base: int
    at: int
    entry: Entry


def entry_of(header: BatchHeader) -> Entry:
    return Entry(header.base_offset, header.leader_epoch, header.next_offset, header.crc)


class LogMatching:
    """Compares the logs of all machines. `checks` counts the comparisons of a batch of one replica
    with another replica's.

    The logs of the topics in `compacted` are left out, because each replica removes other
    batches."""

    def __init__(self, cluster: SimCluster, compacted: Container[str] = ()) -> None:
        self.checks: Counter[str] = Counter()
        self._cluster = cluster
        self._compacted = compacted
        self._known: dict[tuple[object, int, int], Known] = {}
        self._positions: dict[tuple[str, object], Position] = {}

    def look(self, machine: Machine) -> str:
        """Return the fault of the logs of a running machine, or "". Damaged disks are skipped."""
        process = machine.process
        if (
            process is None
            or machine.may_refuse
            or machine.may_fail
            or machine.lying
            or machine.scarred
        ):
            return ""
        logs: list[tuple[object, Log]] = [(METADATA_TOPIC, process.core.log)]
        logs += [
            (key, hosted.log)
            for key, hosted in hosted_by(machine).items()
            if hosted.topic not in self._compacted
        ]
        return next(filter(None, (self._look(machine, name, log) for name, log in logs)), "")

    def _look(self, machine: Machine, name: object, log: Log) -> str:
        kind = "metadata" if name == METADATA_TOPIC else "partition"
        position = self._positions.get((machine.name, name))
        if position is not None and not _still_there(machine.disk, log, position):
            position = None
        before = None if position is None else position.entry
        for base, at, header in _read_on(machine.disk, log, position):
            if header.base_offset >= log.end_offset:
                break
            entry = entry_of(header)
            if before is not None and before.next_offset != entry.offset:
                before = None  # a gap, because the log was discarded and began anew
            if problem := self._compare(machine.name, name, kind, entry, before):
                return problem
            before = entry
            self._positions[machine.name, name] = Position(log, base, at, entry)
        return ""

    def _compare(
        self, who: str, name: object, kind: str, entry: Entry, before: Entry | None
    ) -> str:
        key = (name, entry.offset, entry.epoch)
        known = self._known.setdefault(key, Known(entry, before))
        if who not in known.holders:
            self.checks[f"log matching: {kind}"] += len(known.holders)
        others = [each for each in known.holders if each != who]
        if known.entry != entry:
            return f"log matching: {name}: {who} has {entry}, {others} {known.entry}"
        if known.before is None:
            known.before = before
        elif before is not None and known.before != before:
            return (
                f"log matching: {name}: {entry} follows {before} on {who}, and {known.before} "
                f"on {others}"
            )
        known.holders[who] = None
        return ""

    def rebuilt(self) -> None:
        """Forget the metadata log, because an operator has given up the branches of earlier
        quorums."""
        self._known = {key: each for key, each in self._known.items() if key[0] != METADATA_TOPIC}


def _files(disk: SimDisk, log: Log) -> Iterator[tuple[int, str]]:
    """Return the segments of a log with their base offsets, in order."""
    prefix = f"{log.directory}/"
    found = []
    for path in disk.files(log.directory):
        name = path.removeprefix(prefix)
        if name.endswith(LOG_SUFFIX) and (base := offset_of(name)) is not None:
            found.append((base, path))
    return iter(sorted(found))


def _still_there(disk: SimDisk, log: Log, position: Position) -> bool:
    if position.log is not log or position.entry.next_offset > log.end_offset:
        return False
    path = next((path for base, path in _files(disk, log) if base == position.base), None)
    if path is None:
        return False
    content = disk.inode(path).data
    try:
        return entry_of(read_header(content, position.at)) == position.entry
    except (CorruptBatch, ValueError, IndexError):
        return False


def _read_on(
    disk: SimDisk, log: Log, position: Position | None
) -> Iterator[tuple[int, int, BatchHeader]]:
    """Yield the segment, the place and the header of each batch after `position`."""
    for base, path in _files(disk, log):
        if position is not None and base < position.base:
            continue
        begin = position.at if position is not None and base == position.base else 0
        content = bytes(memoryview(disk.inode(path).data)[begin:])
        try:
            for at, header in batches(content, verify=False):
                if position is None or header.base_offset >= position.entry.next_offset:
                    yield base, begin + at, header
        except CorruptBatch:
            return
