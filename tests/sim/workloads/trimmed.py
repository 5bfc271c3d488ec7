"""A partition whose oldest records are removed by DeleteRecords and retention, while ListOffsets
asks for its ends.

The latest offset never goes back (KIP-207), also across leader changes. The records from the log
start on are the acknowledged ones. DeleteRecords returns a low watermark within the log. Like
Kafka, a broker that is killed may come back with an older log start.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.topics import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from tests.sim.clients.clients import Unreachable
from tests.sim.workloads.workload import EARLIEST, LATEST, TIMEOUT_MS, Workload, require

NAME = "trimmed"
CONFIGS = {"internal.segment.bytes": 1500, "retention.bytes": 4000}


class Trimmed(Workload):
    name_of = "trimmed"
    keys: ClassVar[Mapping[str, str]] = {"log.retention.check.interval.ms": "1000"}

    def __init__(self, stage: Any) -> None:
        super().__init__(stage)
        self._acknowledged: dict[int, bytes] = {}
        self._latest = 0
        self._number = 0
        self.deleted = 0

    async def prepare(self) -> None:
        admin = self.stage.admin
        await admin.spawn(admin.create_surely(NAME, 1))
        for key, value in CONFIGS.items():
            await admin.spawn(admin.configure_surely(NAME, key, value))
        while NAME not in self.topics:
            await self.refresh()

    async def step(self) -> None:
        chance = self.random.randrange(0, 8)
        if chance == 0:
            await self._delete_records()
        elif chance == 1:
            await self._latest_is_not_older()
        else:
            self._number += 1
            value = b"trimmed:%d" % self._number
            done = await self.produce(NAME, 0, value)
            if done is not None:
                self._acknowledged[done[1]] = value
                self._latest = max(self._latest, done[1] + 1)
                self.effects += 1

    async def _delete_records(self) -> None:
        found = self.known_leader(NAME, 0)
        if found is None or not self._latest:
            await self.refresh()
            return
        offset = self.random.randrange(0, self._latest + 1)
        partition = DeleteRecordsPartition(partition_index=0, offset=offset)
        topic = DeleteRecordsTopic(name=NAME, partitions=(partition,))
        answer = await self.ask(
            found[1], DeleteRecordsRequest(topics=(topic,), timeout_ms=TIMEOUT_MS)
        )
        result = answer.topics[0].partitions[0]
        if result.error_code == ErrorCode.NONE:
            require(
                offset <= result.low_watermark,
                f"{NAME}: records below {offset} are deleted, and {result.low_watermark} is lower",
            )
            self.deleted += 1
        elif result.error_code != ErrorCode.OFFSET_OUT_OF_RANGE:  # the leader may be behind
            code = ErrorCode.of(result.error_code)
            require(code.retriable, f"{NAME}: DeleteRecords at {offset}: {code.name}")
            await self.refresh()

    async def _latest_is_not_older(self) -> None:
        before = self._latest
        latest = await self.offset_of(NAME, LATEST)
        if latest is not None:
            require(latest >= before, f"{NAME}: the latest offset is {latest}, it was {before}")
            self._latest = max(self._latest, latest)

    async def check(self) -> None:
        start = None
        while start is None:
            try:
                start = await self.offset_of(NAME, EARLIEST)
            except Unreachable:
                await self.refresh()
        records = dict(await self.read(NAME, 0, start))
        for offset, value in self._acknowledged.items():
            require(
                offset < start or records.get(offset) == value,
                f"{NAME}: {value!r} acknowledged at {offset}, found {records.get(offset)!r}; the "
                f"log starts at {start}",
            )
        require(start <= self._latest, f"{NAME} starts at {start}, behind {self._latest}")
