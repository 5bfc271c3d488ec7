"""A compacted topic, whose cleaner runs on each replica in virtual time.

The latest value of each key stays, and so do the offsets and their order. A reader that began
before a tombstone was written, and that reaches it within delete.retention.ms, sees it.

A cleaner works up to the flushed offset. The brokers flush every 3 s here
(log.flush.offset.checkpoint.interval.ms in `shape.py`), so a record is cleaned up to 4 s late.

In some seeds the topic has cleanup.policy=compact,delete and loses its oldest segments, too. The
log start is then not above a record that retention.bytes keeps. The rules above hold from the log
start on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar

from quorate.quorum.log.batches.batch import batches, records_of
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.fetch import FetchPartition, FetchRequest, FetchTopic
from tests.sim.checks.compacted_log import CompactedLog, Keyed, keyed
from tests.sim.checks.watermarks import hosted_by
from tests.sim.clients.clients import Unreachable
from tests.sim.workloads.workload import EARLIEST, Workload, require

NAME = "compacted"
RETENTION_MS = 5000
CONFIGS = {
    "cleanup.policy": "compact",
    "internal.segment.bytes": "1500",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": str(RETENTION_MS),
}
RETENTION_BYTES = 6000
DELETES = {"cleanup.policy": "compact,delete", "retention.bytes": str(RETENTION_BYTES)}
DELETES_SHARE = 0.4
LARGEST_BATCH_BYTES = 120
"""The largest size of a batch. A batch has one record."""
KEPT_RECORDS = RETENTION_BYTES // LARGEST_BATCH_BYTES
"""The number of the latest records, of which retention deletes none."""
KEYS = tuple(b"key%d" % number for number in range(40))
BURST = 3
READ_BYTES = 2000
READER_S = RETENTION_MS / 1000 * 0.9
"""The longest time of a reader. It is shorter than the retention, because clocks run up to 2 %
fast."""
CLEANED_S = 3.5
WITHOUT_FOLLOWERS = 10
"""The last version of Fetch in which a leader sends no consumer to a follower."""


@dataclass(slots=True)
class Reader:
    """A reader that starts at the first offset and asks one leader only. `behind` is the offset
    after the last record that was acknowledged when it began."""

    began_s: float
    leader: int
    epoch: int
    behind: int
    position: int = 0
    values: dict[bytes, bytes | None] = field(default_factory=dict)


class Compacted(Workload):
    name_of = "compacted"
    keys: ClassVar[Mapping[str, str]] = {
        "log.cleaner.backoff.ms": "300",
        "log.retention.check.interval.ms": "1000",
    }

    def __init__(self, stage: Any) -> None:
        super().__init__(stage)
        stage.invariants.compacted_topics[NAME] = None
        self.acknowledged: dict[int, Keyed] = {}
        self._unknown: dict[bytes, list[bytes | None]] = {key: [] for key in KEYS}
        self._reader: Reader | None = None
        self._number = 0
        self.deletes = stage.cluster.random("compact,delete").random() < DELETES_SHARE
        self.start_offset = self._first = 0

    async def prepare(self) -> None:
        configs = {**CONFIGS, **DELETES} if self.deletes else CONFIGS
        while NAME not in self.topics:
            await self.create(NAME, 1, configs)
            await self.refresh()

    async def step(self) -> None:
        for _ in range(BURST):
            await self._write()
        reader = self._reader
        if reader is None:
            self._begin_reader()
        elif reader.position < reader.behind or self._is_cleaned(reader):
            await self._read_on(reader)

    def _is_cleaned(self, reader: Reader) -> bool:
        """Return True if the cleaner has had time for the records that were written after the
        reader began."""
        return self.stage.loop.time() > reader.began_s + CLEANED_S

    async def _write(self) -> None:
        key = KEYS[int(len(KEYS) * self.random.random() ** 3)]  # the last keys are rare
        self._number += 1
        value = None if self.random.randrange(0, 6) == 0 else b"compacted:%d" % self._number
        self._unknown[key].append(value)
        done = await self.produce(NAME, 0, value, key=key)
        if done is not None:
            self._unknown[key].remove(value)
            self.acknowledged[done[1]] = Keyed(key, value)
            self.count("writes")

    # -- a reader --------------------------------------------------------------------------------

    def _begin_reader(self) -> None:
        found = self.known_leader(NAME, 0)
        if found is not None:
            behind = max(self.acknowledged, default=-1) + 1
            epoch = self.topics[NAME].epochs[0]
            now_s = self.stage.loop.time()
            self._reader = Reader(now_s, found[1], epoch, behind, self._first)

    async def _read_on(self, reader: Reader) -> None:
        """Read some more. Check the reader once it has read everything."""
        asked = FetchPartition(
            partition=0,
            current_leader_epoch=reader.epoch,
            fetch_offset=reader.position,
            partition_max_bytes=READ_BYTES,
        )
        topic = FetchTopic(topic=NAME, partitions=(asked,))
        request = FetchRequest(max_wait_ms=0, min_bytes=0, topics=(topic,))
        self._reader = None
        answer = await self.ask(reader.leader, request, WITHOUT_FOLLOWERS)
        found = None if answer.error_code else answer.responses[0].partitions[0]
        if found is None or found.error_code:
            if found is not None:
                code = ErrorCode.of(found.error_code)
                overtaken = self.deletes and code is ErrorCode.OFFSET_OUT_OF_RANGE
                require(
                    code.retriable or overtaken, f"{NAME}: fetch at {reader.position}: {code.name}"
                )
                if overtaken:
                    self._first = await self.offset_of(NAME, EARLIEST) or 0
            await self.refresh()
            return
        data = bytes(found.records or b"")
        for at, header in batches(data):
            for record in records_of(data, at, header):
                if record.offset >= reader.position:
                    key, value = keyed(record)
                    reader.values[key] = value
            reader.position = max(reader.position, header.next_offset)
        in_time = self.stage.loop.time() < reader.began_s + READER_S
        stepped = any(fault.kind == "step_clock" for fault in self.stage.faults.done)
        if not in_time or stepped:
            return
        behind = reader.position <= max(self.acknowledged, default=-1)
        if behind or not self._is_cleaned(reader):
            self._reader = reader
        else:
            self.check_reader(reader)

    def check_reader(self, reader: Reader) -> None:
        """Check the values of the keys whose last record was written after the reader began."""
        for key, (offset, value) in last_of(self.acknowledged).items():
            if reader.behind <= offset < reader.position and not self._unknown[key]:
                require(
                    reader.values.get(key) == value,
                    f"{NAME}: a reader up to {reader.position} has {reader.values.get(key)!r} as "
                    f"the value of {key!r}; at {offset} is {value!r}",
                )
                self.count("values that readers saw" if value else "tombstones that readers saw")

    # -- the end ---------------------------------------------------------------------------------

    async def check(self) -> None:
        start = await self._start()
        found = await self.records(NAME, 0, start, moves=self.deletes)
        self.check_start(await self._start())  # retention may have gone on meanwhile
        records = [(each.offset, keyed(each)) for each in found]
        require(
            all(one[0] < other[0] for one, other in pairwise(records)),
            f"{NAME}: offsets are out of order",
        )
        self.check_records(records)
        self._check_replicas()

    async def _start(self) -> int:
        while True:
            try:
                start = await self.offset_of(NAME, EARLIEST)
            except Unreachable:
                start = None
            if start is not None:
                return start
            await self.refresh()

    def check_start(self, start: int) -> None:
        """Check that the log start is not above a record that retention.bytes keeps."""
        end = max(self.acknowledged, default=-1) + 1
        latest = max(0, end - KEPT_RECORDS) if self.deletes else 0
        require(start <= latest, f"{NAME}: the log starts at {start}, above {latest}")
        self.start_offset = start
        if start:
            self.count("logs whose head was deleted")

    def check_records(self, records: Sequence[tuple[int, Keyed]]) -> None:
        """Check all records of the topic, by offset."""
        by_offset = dict(records)
        latest = {found.key: found.value for _, found in records}
        for offset, known in self.acknowledged.items():
            found = by_offset.get(offset, known)
            require(found == known, f"{NAME}: {known} acknowledged at {offset}, found {found}")
            if offset not in by_offset and offset >= self.start_offset:
                self.count("records cleaned away")
        for key, (offset, value) in last_of(self.acknowledged).items():
            allowed = [value, *self._unknown[key]]
            if offset < self.start_offset:
                allowed.append(None)
            require(
                latest.get(key) in allowed,
                f"{NAME}: the value of {key!r} is {latest.get(key)!r}; {value!r} was acknowledged "
                f"last, at {offset}",
            )

    def _check_replicas(self) -> None:
        """Each replica has the latest value of each key, up to its high watermark, and no other
        one as far as it is cleaned.

        Disks that have lied are left out, because reads of damaged bytes raise CorruptLog."""
        for machine in self.stage.cluster.brokers:
            if machine.scarred or machine.lying:
                continue
            for key, hosted in hosted_by(machine).items():
                history = self.stage.invariants.committed(key)
                if hosted.topic != NAME or not isinstance(history, CompactedLog):
                    continue
                offset, end = hosted.log.start_offset, hosted.partition.high_watermark
                found: list[int] = []
                while offset < end and (data := bytes(hosted.log.read(offset, 1 << 20, end=end))):
                    for at, header in batches(data):
                        found += [each.offset for each in records_of(data, at, header)]
                    offset = history.holds(machine.name, data, end)
                problem = history.missing(found, end, hosted.log.start_offset)
                require(not problem, f"{machine.name}: {problem}")
                assert machine.process is not None and machine.process.broker is not None
                cleaned = machine.process.broker.replicas.logs.cleaner_offset(hosted.name) or 0
                problem = history.left_over(found, cleaned)
                require(not problem, f"{machine.name}: {problem}")
                self.stage.coverage["compacted replicas compared"] += 1


def last_of(records: Mapping[int, Keyed]) -> dict[bytes, tuple[int, bytes | None]]:
    """Return the last offset and value of each key."""
    return {found.key: (offset, found.value) for offset, found in sorted(records.items())}
