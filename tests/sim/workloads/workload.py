"""The interface of a workload, and the requests that several of them send."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from quorate.quorum.ids import Uuid
from quorate.quorum.log.batches.batch import batches, build_batch, records_of
from quorate.quorum.log.batches.record import Record
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.fetch import FetchPartition, FetchRequest, FetchTopic
from quorate.quorum.protocol.schemas.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from quorate.quorum.protocol.schemas.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from quorate.quorum.protocol.schemas.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from tests.sim.checks.committed_log import Violation
from tests.sim.clients.clients import Client, Unreachable

if TYPE_CHECKING:
    from tests.sim.run import Simulation

TIMEOUT_MS = 1000
LATEST, EARLIEST = -1, -2
BACKOFF_S = 0.05


class Workload(Client):
    """One client with a loop of steps. `effects` counts the steps that succeeded."""

    name_of: ClassVar[str]
    keys: ClassVar[Mapping[str, str]] = {}
    """Configuration of all nodes that the workload needs."""
    logs_in: ClassVar[bool] = False
    """True if the workload needs the listener for clients that log in."""
    kills: ClassVar[bool] = False
    """True if the workload kills nodes, also while a fault is under way."""

    def __init__(self, stage: Simulation) -> None:
        super().__init__(stage.cluster, self.name_of)
        self.stage = stage
        self.stopping = False
        self.effects = 0
        self._task: asyncio.Task[None] | None = None

    def count(self, what: str) -> None:
        """Count an effect, in the sum and by its kind."""
        self.effects += 1
        self.stage.coverage[f"workload {self.name_of}: {what}"] += 1

    async def prepare(self) -> None:
        """Set up the workload while the cluster is healthy."""

    async def step(self) -> None:
        """Do one thing. Raise Unreachable if the outcome is unknown."""
        raise NotImplementedError

    async def check(self) -> None:
        """Check all promises after the faults. Raise Violation if one is broken."""
        raise NotImplementedError

    def start(self, pace_s: float) -> None:
        self._task = self.spawn(self._run(pace_s))

    async def stop(self) -> None:
        self.stopping = True
        if self._task is not None:
            await self._task

    async def _run(self, pace_s: float) -> None:
        while not self.stopping:
            await self.pause(pace_s)
            try:
                await self.step()
            except Unreachable:
                await self.refresh()

    # -- requests --------------------------------------------------------------------------------

    def known_leader(self, name: str, partition: int) -> tuple[Uuid, int] | None:
        """Return the topic's id and the leader as this client knows them, or None."""
        topic = self.topics.get(name)
        leader = -1 if topic is None else topic.leaders.get(partition, -1)
        return None if topic is None or leader not in self._addresses else (topic.id, leader)

    async def create(
        self, name: str, partitions: int, configs: Mapping[str, str] | None = None
    ) -> int:
        topic = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=3,
            assignments=(),
            configs=tuple(
                CreatableTopicConfig(name=key, value=value)
                for key, value in (configs or {}).items()
            ),
        )
        request = CreateTopicsRequest(topics=(topic,), timeout_ms=TIMEOUT_MS)
        answer = await self.ask_any(request)
        error: int = answer.topics[0].error_code
        return error

    async def delete(self, name: str) -> int:
        request = DeleteTopicsRequest(topics=(DeleteTopicState(name=name),), timeout_ms=TIMEOUT_MS)
        answer = await self.ask_any(request)
        error: int = answer.responses[0].error_code
        return error

    async def produce(
        self, name: str, partition: int, value: bytes | None, *, key: bytes | None = None
    ) -> tuple[Uuid, int] | None:
        """Write one record with acks=all. Return the topic's id and the offset, or None if the
        broker refused. Raise Unreachable if the outcome is unknown."""
        found = self.known_leader(name, partition)
        if found is None:
            await self.refresh()
            return None
        topic_id, leader = found
        wall_ms = self._clock.wall_ms()  # retention deletes records that are older than a week
        batch = build_batch([Record(0, wall_ms, key, value)], leader_epoch=-1)
        data = PartitionProduceData(index=partition, records=bytes(batch))
        topic = TopicProduceData(name=name, topic_id=topic_id, partition_data=(data,))
        request = ProduceRequest(acks=-1, timeout_ms=TIMEOUT_MS // 2, topic_data=(topic,))
        answer = await self.ask(leader, request)
        result = answer.responses[0].partition_responses[0]
        if result.error_code == ErrorCode.NONE:
            return topic_id, result.base_offset
        await self.refresh()
        return None

    async def offset_of(self, name: str, timestamp: int) -> int | None:
        """Return the offset of ListOffsets for partition 0, or None if the broker refused."""
        found = self.known_leader(name, 0)
        if found is None:
            await self.refresh()
            return None
        asked = ListOffsetsPartition(
            partition_index=0,
            current_leader_epoch=self.topics[name].epochs[0],
            timestamp=timestamp,
        )
        topic = ListOffsetsTopic(name=name, partitions=(asked,))
        answer = await self.ask(found[1], ListOffsetsRequest(replica_id=-1, topics=(topic,)))
        result = answer.topics[0].partitions[0]
        if result.error_code == ErrorCode.NONE:
            offset: int = result.offset
            return offset
        await self.refresh()
        return None

    async def read(self, name: str, partition: int, start: int) -> list[tuple[int, bytes]]:
        """Return the offsets and values from `start` on, from a healthy cluster."""
        records = await self.records(name, partition, start)
        return [(record.offset, bytes(record.value or b"")) for record in records]

    async def records(
        self, name: str, partition: int, start: int, *, moves: bool = False
    ) -> list[Record]:
        """Return all records from `start` on, from a healthy cluster.

        The high watermark of a new leader may be behind for a moment (KIP-207). The reader
        therefore waits for the highest one that the partition ever had, unless an unclean election
        may have lost it. With `moves` the log start of partition 0 may overtake the reader."""
        records: list[Record] = []
        preferred = -1  # a follower that the leader names for reads (KIP-392)
        end = 0
        while True:
            topic_id, leader = await self.leader((name, partition))
            if not self.stage.invariants.is_unclean((topic_id, partition)):
                end = max(end, self.stage.invariants.watermarks.highest((topic_id, partition)))
            asked = FetchPartition(
                partition=partition, fetch_offset=start, partition_max_bytes=1 << 20
            )
            topic = FetchTopic(topic=name, topic_id=topic_id, partitions=(asked,))
            try:
                answer = await self.ask(
                    leader if preferred < 0 else preferred,
                    FetchRequest(max_wait_ms=0, min_bytes=0, topics=(topic,)),
                )
            except Unreachable:
                preferred = -1
                await self.refresh()
                continue
            # The answer to a client that exceeds its quota has no partitions.
            empty = answer.error_code or not answer.responses
            found: Any = None if empty else answer.responses[0].partitions[0]
            if found is None or found.error_code:
                preferred = -1
                await self.pause(BACKOFF_S)
                await self.refresh()
                code = 0 if found is None else found.error_code
                if moves and code == ErrorCode.OFFSET_OUT_OF_RANGE:
                    with contextlib.suppress(Unreachable):
                        start = await self.offset_of(name, EARLIEST) or start
                continue
            data = bytes(found.records or b"")
            for at, header in batches(data):
                found_now = records_of(data, at, header)
                records += [record for record in found_now if record.offset >= start]
                start = max(start, header.next_offset)
            if preferred < 0 <= found.preferred_read_replica:
                preferred = found.preferred_read_replica
            elif start >= max(end, found.high_watermark):
                return records
            elif not data:
                await self.pause(BACKOFF_S)
            end = max(end, found.high_watermark)


def require(holds: object, problem: str) -> None:
    """Raise Violation with `problem` unless `holds` is true."""
    if not holds:
        raise Violation(problem)
