"""A consumer that reads during a run: a record read once must never change.

One fetch loop per broker reads the partitions that the broker leads, according to the newest
metadata. A record below the high watermark is committed. If another record, or none, is at its
offset at the end, a broker has exposed an uncommitted record."""

from __future__ import annotations

import asyncio
import time
from array import array
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from quorate.cli.chaos.workload.brokers import FAILURES, Brokers
from quorate.cli.chaos.workload.read_delays import ReadDelays
from quorate.cli.client.batches import whole_batches
from quorate.quorum.log.batches.batch import records_of
from quorate.quorum.protocol.schemas.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    PartitionData,
)

MAX_WAIT_MS = 300
ANSWER_MS = 3000
"""The time for an answer, in addition to the wait for records."""
RETRY_S = 0.05
PARTITION_MAX_BYTES = 1 << 20
UNREADABLE = -1
NO_LEADER = -1
"""The number in place of a key that is no number."""


@dataclass(slots=True)
class Reader:
    """The consumer of one run, owned by the event loop on which `start` is called.

    It reads from offset 0 on, so the topic must be new. It stops at an offset without a record."""

    brokers: Brokers
    delays: ReadDelays
    """The acknowledged batches that wait for this consumer."""
    read: dict[int, array[int]] = field(default_factory=dict)
    """The number of the record at each offset, by partition."""
    _loops: list[asyncio.Task[None]] = field(default_factory=list)

    def start(self, node_ids: Sequence[int], partitions: int) -> None:
        """Start a fetch loop for each broker. `partitions` is the topic's number of partitions."""
        self.read = {partition: array("q") for partition in range(partitions)}
        self._loops = [asyncio.create_task(self._follow(node_id)) for node_id in node_ids]

    @property
    def records(self) -> int:
        """Return the number of records read."""
        return sum(map(len, self.read.values()))

    async def stop(self) -> None:
        """Cancel the loops. Raise the first unexpected error of one of them."""
        for loop in self._loops:
            loop.cancel()
        results = await asyncio.gather(*self._loops, return_exceptions=True)
        for result in results:
            if isinstance(result, Exception):
                raise result

    async def _follow(self, node_id: int) -> None:
        while True:
            led = self.brokers.led_by(node_id)
            if not led:
                await asyncio.sleep(RETRY_S)
                if self.brokers.led_by(NO_LEADER):
                    await self.brokers.refresh()
                continue
            try:
                answer = await self.brokers.call(
                    node_id, self._request(led), timeout_ms=MAX_WAIT_MS + ANSWER_MS
                )
            except FAILURES:
                await self.brokers.refresh(last=node_id)
                continue
            refused = [self._taken(each) for topic in answer.responses for each in topic.partitions]
            if not all(refused):
                await self.brokers.refresh(last=node_id)

    def _request(self, partitions: Sequence[int]) -> FetchRequest:
        wanted = tuple(
            FetchPartition(
                partition=partition,
                fetch_offset=len(self.read[partition]),
                partition_max_bytes=PARTITION_MAX_BYTES,
            )
            for partition in partitions
        )
        topic = FetchTopic(
            topic=self.brokers.topic, topic_id=self.brokers.topic_id, partitions=wanted
        )
        return FetchRequest(max_wait_ms=MAX_WAIT_MS, min_bytes=1, topics=(topic,))

    def _taken(self, data: PartitionData) -> bool:
        """Add the records of one partition. Return False if the broker does not lead it."""
        read = self.read[data.partition_index]
        content = memoryview(data.records or b"")
        for position, header in whole_batches(content):
            for record in records_of(content, position, header):
                if record.offset == len(read):
                    read.append(number_of(bytes(record.key or b"")))
        self.delays.read(data.partition_index, len(read), time.monotonic())
        return not data.error_code


def number_of(key: bytes) -> int:
    """Return the number that a key contains, or UNREADABLE."""
    return int(key) if key.isdigit() else UNREADABLE


def taken_back(
    read: Mapping[int, Sequence[int]],
    final: Mapping[int, Sequence[int]],
    unread: Collection[int] = (),
) -> list[tuple[int, int]]:
    """Return (partition, offset) of each record in `read` that `final` lacks or contradicts.

    In the partitions of `unread`, which were not read to their end, a record that `final` lacks
    does not count."""
    return [
        (partition, offset)
        for partition, numbers in sorted(read.items())
        for offset, number in enumerate(numbers)
        if (
            final[partition][offset] != number
            if offset < len(final[partition])
            else partition not in unread
        )
    ]
