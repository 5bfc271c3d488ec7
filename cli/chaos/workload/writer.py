"""The producers of a run: idempotent with acks=all, with one batch in flight per partition.

With acks=1 they are not idempotent, as in Kafka, where idempotence needs acks=all.

A batch is sent with the same sequence number until it is acknowledged. The roaming writer sends it
to the present leader, and stops writing to a partition after a fatal error. The pinned writer
always sends to one broker, like a client that never refreshes its metadata. The time that a batch
waits is the outage that a client sees."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from quorate.cli.chaos.timeline.outage import Gap
from quorate.cli.chaos.workload.brokers import FAILURES, Brokers
from quorate.cli.chaos.workload.ledger import PINNED, ROAMING, Ledger
from quorate.quorum.log.batches.batch import build_batch
from quorate.quorum.log.batches.record import Record
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.init_producer_id import InitProducerIdRequest
from quorate.quorum.protocol.schemas.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)

ACKS_ALL = -1
RETRY_S = 0.02
MAX_BATCHES_PER_S = 250
"""Maximum number of batches per second in all partitions together."""
MIN_INTERVAL_S = 0.03
"""Minimum time, in s, between two batches of a partition."""
OUTAGE_S = 0.25
"""Time, in s, from which on the wait of a batch is an outage. Shorter waits are normal latency,
even on a busy machine."""
ANSWER_SLACK_MS = 1000
"""Time, in ms, for which the client waits for an answer after the timeout of a request.

A broker that runs answers REQUEST_TIMED_OUT at the timeout."""
FATAL = frozenset(
    {
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.CORRUPT_MESSAGE,
    }
)
"""Errors that a writer with one batch in flight gets only if acknowledged records are lost."""
MAX_REFUSALS = 100_000
"""The most errors of a pinned writer that are kept with their times."""


class NoProducerId(Exception):
    """No broker assigned a producer id."""


@dataclass(frozen=True, slots=True)
class Pace:
    """The size and the interval of a partition's batches."""

    records: int
    interval_s: float

    @classmethod
    def of(cls, records_per_s: int, partitions: int) -> Pace:
        """Return small batches for one partition, at a number per second that a process sustains.

        The rate of all partitions together is approximately `records_per_s`, but at least one
        record per batch."""
        interval_s = max(MIN_INTERVAL_S, partitions / MAX_BATCHES_PER_S)
        return cls(max(1, round(records_per_s * interval_s / partitions)), interval_s)


@dataclass(slots=True, kw_only=True)
class Writer:
    """The producer of one run, owned by the event loop on which `start` is called.

    One task per partition writes batches until `stop`."""

    brokers: Brokers
    ledger: Ledger
    pace: Pace
    timeout_ms: int
    acks: int = ACKS_ALL
    client: int = ROAMING
    _producer: tuple[int, int] = (-1, -1)
    _sequences: dict[int, int] = field(default_factory=dict)
    _lanes: list[asyncio.Task[None]] = field(default_factory=list)
    _stopping: bool = False
    _waiting: dict[int, float] = field(default_factory=dict)

    async def start(self, partitions: Sequence[int]) -> None:
        """Get a producer id, unless acks is 1, and start the tasks.

        Raise NoProducerId if no broker assigns one within ten times `timeout_ms`."""
        if self.acks == ACKS_ALL:
            self._producer = await self._producer_id()
        self._lanes = [asyncio.create_task(self._lane(partition)) for partition in partitions]

    async def stop(self, timeout_s: float) -> None:
        """Stop after the batches in flight, or cancel them after `timeout_s`.

        A batch that has then waited longer than OUTAGE_S counts as an outage up to now. Raise the
        first unexpected error of a task. A second call is allowed."""
        self._stopping = True
        if self._lanes:
            _, late = await asyncio.wait(self._lanes, timeout=timeout_s)
            for lane in late:
                lane.cancel()
            await asyncio.gather(*self._lanes, return_exceptions=True)
        for lane in self._lanes:
            if not lane.cancelled() and (error := lane.exception()) is not None:
                raise error
        for partition, since_s in self._waiting.items():
            self._waited(partition, since_s)
        self._waiting.clear()

    async def _lane(self, partition: int) -> None:
        await asyncio.sleep(self.pace.interval_s * partition / self.ledger.partitions)
        while not self._stopping:
            numbers = self.ledger.take(self.client, partition, self.pace.records)
            since_s = self._waiting[partition] = time.monotonic()
            if not await self._until_acknowledged(partition, numbers):
                return
            del self._waiting[partition]
            self._waited(partition, since_s)
            if self.client == ROAMING:
                self.ledger.latencies.add(since_s, time.monotonic())
            await asyncio.sleep(max(0.0, since_s + self.pace.interval_s - time.monotonic()))

    def _waited(self, partition: int, since_s: float) -> None:
        now_s = time.monotonic()
        if self.client == ROAMING and now_s - since_s > OUTAGE_S:
            self.ledger.outages.append(Gap(partition, since_s, now_s))

    async def _until_acknowledged(self, partition: int, numbers: Sequence[int]) -> bool:
        """Send a batch until it is acknowledged. Return False after a fatal error."""
        request = self._request(partition, numbers)
        while True:
            leader = self.brokers.leader(partition)
            code, offset = await self.send(leader, request)
            if code is ErrorCode.NONE:
                self._sequences[partition] = self._sequences.get(partition, 0) + len(numbers)
                self.ledger.acknowledge(numbers, offset, time.monotonic())
                return True
            if code in FATAL:
                self.ledger.failures.append(f"partition {partition}: broker {leader}: {code.name}")
                return False
            await self.brokers.refresh(last=leader)

    async def send(self, node_id: int, request: ProduceRequest) -> tuple[ErrorCode, int]:
        """Send a request to a broker, and return the error and the base offset.

        Without an answer they are NETWORK_EXCEPTION and -1."""
        timeout_ms = request.timeout_ms + ANSWER_SLACK_MS
        try:
            answer = await self.brokers.call(node_id, request, timeout_ms=timeout_ms)
        except FAILURES:
            return ErrorCode.NETWORK_EXCEPTION, -1
        (result,) = answer.responses[0].partition_responses
        return ErrorCode.of(result.error_code), result.base_offset

    def _request(self, partition: int, numbers: Sequence[int]) -> ProduceRequest:
        now_ms = time.time_ns() // 1_000_000
        records = [
            Record(index, now_ms, self.ledger.key(number), self.ledger.value(number))
            for index, number in enumerate(numbers)
        ]
        batch = build_batch(
            records,
            leader_epoch=-1,
            producer_id=self._producer[0],
            producer_epoch=self._producer[1],
            base_sequence=self._sequences.get(partition, 0) if self.acks == ACKS_ALL else -1,
        )
        data = PartitionProduceData(index=partition, records=bytes(batch))
        topic = TopicProduceData(
            name=self.brokers.topic, topic_id=self.brokers.topic_id, partition_data=(data,)
        )
        return ProduceRequest(
            transactional_id=None, acks=self.acks, timeout_ms=self.timeout_ms, topic_data=(topic,)
        )

    async def _producer_id(self) -> tuple[int, int]:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
        deadline_s = time.monotonic() + self.timeout_ms * 10 / 1000
        while time.monotonic() < deadline_s:
            for node_id in sorted({each.node_id for each in self.brokers.leaders.values()}):
                try:
                    answer = await self.brokers.call(node_id, request, timeout_ms=self.timeout_ms)
                except FAILURES:
                    continue
                if not answer.error_code:
                    return answer.producer_id, answer.producer_epoch
            await asyncio.sleep(RETRY_S)
        raise NoProducerId(
            "no broker assigned a producer id. Check that a majority of the controllers runs."
        )


@dataclass(frozen=True, slots=True)
class Success:
    """An acknowledged batch of the pinned writer."""

    partition: int
    sent_s: float


@dataclass(slots=True, kw_only=True)
class PinnedWriter(Writer):
    """A producer that never looks up leaders and sends every batch to one broker.

    It repeats a batch after any error until `stop`. `refused` counts the errors by name, with
    NETWORK_EXCEPTION for no answer."""

    node_id: int
    client: int = PINNED
    refused: Counter[str] = field(default_factory=Counter)
    refusals: list[tuple[int, float, str]] = field(default_factory=list)
    """(partition, time in s, name) of the first MAX_REFUSALS errors."""
    successes: list[Success] = field(default_factory=list)

    async def _until_acknowledged(self, partition: int, numbers: Sequence[int]) -> bool:
        request = self._request(partition, numbers)
        while not self._stopping:
            sent_s = time.monotonic()
            code, offset = await self.send(self.node_id, request)
            if code is ErrorCode.NONE:
                self._sequences[partition] = self._sequences.get(partition, 0) + len(numbers)
                self.ledger.acknowledge(numbers, offset, time.monotonic())
                self.successes.append(Success(partition, sent_s))
                return True
            self.refused[code.name] += 1
            if len(self.refusals) < MAX_REFUSALS:
                self.refusals.append((numbers[0] % self.ledger.partitions, sent_s, code.name))
            await asyncio.sleep(RETRY_S)
        return False
