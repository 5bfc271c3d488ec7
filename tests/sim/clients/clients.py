"""Clients at the protocol level, on the client port. They do what librdkafka does, in few lines.

They find leaders by Metadata requests, send again what may be retried, and report acknowledged
records to the history.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeVar

from quorate.quorum.ids import Uuid
from quorate.quorum.log.batches.batch import (
    HEADER_BYTES,
    BatchHeader,
    batches,
    build_batch,
    records_of,
)
from quorate.quorum.log.batches.record import Record
from quorate.quorum.log.files.errors import CorruptBatch
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.fetch import FetchPartition, FetchRequest, FetchTopic
from quorate.quorum.protocol.schemas.init_producer_id import InitProducerIdRequest
from quorate.quorum.protocol.schemas.metadata import MetadataRequest
from quorate.quorum.protocol.schemas.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from quorate.quorum.protocol.wire import Message
from quorate.quorum.rpc.kafka.client import ClientError, ClientSettings, KafkaClient
from quorate.quorum.seams import Address, TransportError
from tests.sim.checks.invariants import Invariants, Violation
from tests.sim.clients.history import FOREIGN, History, Place, Promises, value_of
from tests.sim.world.clock import SimClock
from tests.sim.world.cluster import SimCluster
from tests.sim.world.transport import SimTransport

REQUEST_TIMEOUT_MS = 1500
CONNECT_TIMEOUT_MS = 500
BACKOFF_S = 0.05
WINDOW = 3  # batches in flight to one partition
MAX_RECORDS = 3
FETCH_BYTES = 1 << 20
POLLS_OF_A_FOLLOWER = 20
UNKNOWN_OUTCOME = None
T = TypeVar("T")


class Unreachable(Exception):
    """Raised if no answer came, so that the outcome of the request is unknown."""


@dataclass(slots=True)
class Topic:
    """The leaders of a topic's partitions and their epochs. A client never returns to an earlier
    epoch, because the broker that reports it is behind (KIP-320)."""

    id: Uuid
    leaders: dict[int, int] = field(default_factory=dict)
    epochs: dict[int, int] = field(default_factory=dict)


class Client:
    """One client of the cluster. `random` belongs to this client. Use it only inside tasks of its
    host."""

    def __init__(self, cluster: SimCluster, name: str) -> None:
        self.name = name
        self.host = cluster.network.boot(name)
        self.random: Random = cluster.random(name)
        self.topics: dict[str, Topic] = {}
        self._cluster = cluster
        self._clock = SimClock(self.host)
        self._transport = SimTransport(cluster.network, self.host)
        self._addresses = cluster.addresses()
        self._links: dict[int, KafkaClient] = {}

    async def ask(
        self,
        broker_id: int,
        request: Message,
        version: int | None = None,
        *,
        timeout_ms: int | None = None,
    ) -> Any:
        """Send a request to a broker and return the answer. Raise Unreachable if no answer
        comes."""
        try:
            link = await self.link(broker_id)
            return await link.call(request, version, timeout_ms=timeout_ms)
        except (ClientError, TransportError) as error:
            raise Unreachable(str(error)) from error

    async def ask_any(self, request: Message) -> Any:
        return await self.ask(self.random.choice(sorted(self._addresses)), request)

    async def refresh(self) -> None:
        """Refresh the metadata from any node."""
        try:
            answer = await self.ask_any(MetadataRequest(topics=None))
        except Unreachable:
            return
        for found in answer.topics:
            topic = self.topics.get(found.name)
            if topic is None or topic.id != found.topic_id:
                topic = self.topics[found.name] = Topic(found.topic_id)
            for each in found.partitions:
                if each.leader_epoch >= topic.epochs.get(each.partition_index, -1):
                    topic.leaders[each.partition_index] = each.leader_id
                    topic.epochs[each.partition_index] = each.leader_epoch

    async def leader(self, place: Place) -> tuple[Uuid, int]:
        """Return the topic's id and the leader of a partition. Ask until there is a leader."""
        while True:
            topic = self.topics.get(place[0])
            leader = topic.leaders.get(place[1], -1) if topic is not None else -1
            if topic is not None and leader in self._addresses:
                return topic.id, leader
            await self.pause(BACKOFF_S)
            await self.refresh()

    def spawn(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run `work` as a task of this client. An exception in it fails the run."""
        task = self.host.spawn(work)
        task.add_done_callback(self._cluster.task_done)
        return task

    async def pause(self, seconds: float) -> None:
        await asyncio.sleep(seconds * (0.5 + self.random.random()))

    def close(self) -> None:
        for link in self._links.values():
            link.close()

    async def link(self, broker_id: int) -> KafkaClient:
        link = self._links.get(broker_id)
        if link is None or link.closed:
            settings = ClientSettings(
                client_id=self.name,
                request_timeout_ms=REQUEST_TIMEOUT_MS,
                connect_timeout_ms=CONNECT_TIMEOUT_MS,
            )
            address: Address = self._addresses[broker_id]
            link = await KafkaClient.connect(self._transport, self._clock, address, settings)
            self._links[broker_id] = link
        return link


@dataclass(slots=True)
class Batch:
    first: int  # the number of its first record, which is its sequence number, too
    count: int


@dataclass(slots=True, kw_only=True)
class ProducerSettings:
    acks: int = -1
    idempotent: bool = True
    pace_s: float = 0.1


class Producer(Client):
    """A producer with one task per partition. An idempotent producer sends its batches again until
    they are acknowledged, in order, with the same sequence numbers."""

    def __init__(
        self, cluster: SimCluster, history: History, name: str, settings: ProducerSettings
    ) -> None:
        super().__init__(cluster, name)
        self.settings = settings
        self.stopping = False
        self._history = history
        self._producer = (-1, -1)
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, places: list[Place]) -> None:
        self._tasks.append(self.spawn(self._run(places)))

    async def stop(self) -> None:
        """Send no new batches. Return when no batch has to be sent again."""
        self.stopping = True
        for task in self._tasks:
            await task

    async def _run(self, places: list[Place]) -> None:
        if self.settings.idempotent:
            await self._get_producer_id()
        await asyncio.gather(*(self._produce(place) for place in places))

    async def _get_producer_id(self) -> None:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
        while True:
            try:
                answer = await self.ask_any(request)
            except Unreachable:
                answer = None
            if answer is not None and answer.error_code == ErrorCode.NONE:
                self._producer = answer.producer_id, answer.producer_epoch
                return
            await self.pause(BACKOFF_S)

    async def _produce(self, place: Place) -> None:
        promises = self._history.of(self.name, place)
        waiting: list[Batch] = []
        while not self.stopping or waiting:
            if not waiting:
                await self.pause(self.settings.pace_s)
            while not self.stopping and len(waiting) < self.random.randrange(1, WINDOW + 1):
                batch = Batch(promises.sent, self.random.randrange(1, MAX_RECORDS + 1))
                promises.sent += batch.count
                waiting.append(batch)
            waiting = await self._send(place, waiting, promises)

    async def _send(self, place: Place, waiting: list[Batch], promises: Promises) -> list[Batch]:
        """Send batches to the leader. Return those that have to be sent again."""
        topic_id, leader = await self.leader(place)
        answers: list[tuple[int | None, int]] = [(UNKNOWN_OUTCOME, -1)] * len(waiting)
        with contextlib.suppress(TransportError):
            # one link for all batches, or they could overtake each other
            link = await self.link(leader)
            answers = await asyncio.gather(
                *(self._send_batch(link, place, topic_id, batch) for batch in waiting)
            )
        again: list[Batch] = []
        for batch, (error, offset) in zip(waiting, answers, strict=True):
            if error in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
                self._acknowledged(place, promises, batch, offset)
                continue
            name = "no answer" if error is UNKNOWN_OUTCOME else ErrorCode.of(error).name
            self._cluster.note(f"{self.name} {place[0]}-{place[1]} {batch}: {name}")
            if error == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and promises.overtook(batch.first):
                continue
            if error is not UNKNOWN_OUTCOME:
                self._check_retriable(place, batch, error, first=not again)
            if self.settings.idempotent:
                again.append(batch)
            else:
                promises.unanswered.update(range(batch.first, batch.first + batch.count))
        if len(answers) > sum(1 for error, _ in answers if error == ErrorCode.NONE):
            await self.pause(BACKOFF_S)
            await self.refresh()
        return again

    async def _send_batch(
        self, link: KafkaClient, place: Place, topic_id: Uuid, batch: Batch
    ) -> tuple[int | None, int]:
        data = PartitionProduceData(index=place[1], records=self._records(batch))
        topic = TopicProduceData(name=place[0], topic_id=topic_id, partition_data=(data,))
        request = ProduceRequest(
            acks=self.settings.acks, timeout_ms=REQUEST_TIMEOUT_MS // 2, topic_data=(topic,)
        )
        try:
            answer = await link.call(request)
        except ClientError:
            return UNKNOWN_OUTCOME, -1
        result = answer.responses[0].partition_responses[0]
        return result.error_code, result.base_offset

    def _records(self, batch: Batch) -> bytes:
        wall_ms = self._clock.wall_ms()
        records = [
            Record(delta, wall_ms, None, value_of(self.name, batch.first + delta))
            for delta in range(batch.count)
        ]
        producer_id, producer_epoch = self._producer
        return bytes(
            build_batch(
                records,
                leader_epoch=-1,
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                base_sequence=batch.first if self.settings.idempotent else -1,
            )
        )

    def _acknowledged(self, place: Place, promises: Promises, batch: Batch, offset: int) -> None:
        self._cluster.note(f"{self.name} {place[0]}-{place[1]} {batch} acked at {offset}")
        if self.settings.acks == -1:
            for delta in range(batch.count):
                known = offset + delta if offset >= 0 else -1
                promises.acknowledged[batch.first + delta] = known

    def _check_retriable(self, place: Place, batch: Batch, error: int, *, first: bool) -> None:
        """Raise Violation if an error must not happen. A sequence error may only happen behind a
        batch that failed. Otherwise the broker has lost the producer's state."""
        code = ErrorCode.of(error)
        if code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and not first:
            return
        if not code.retriable:
            raise Violation(f"{self.name} {place}: {batch} got {code.name}")


@dataclass(slots=True)
class Position:
    offset: int = 0
    records: list[tuple[int, bytes]] = field(default_factory=list)
    follower: int | None = None
    """The follower to which the leader has sent the consumer, or None for the leader."""
    polls_left: int = 0
    """The number of polls of the follower before the consumer asks the leader again."""


class Consumer(Client):
    """Reads partitions from their start, over and over, one after the other. All records that it
    gets must be committed. It reads from a follower if the leader names one."""

    def __init__(
        self, cluster: SimCluster, history: History, invariants: Invariants, name: str
    ) -> None:
        super().__init__(cluster, name)
        self.stopping = False
        self.positions: dict[Place, Position] = {}
        self._history = history
        self._invariants = invariants
        self._task: asyncio.Task[None] | None = None

    def start(self, places: list[Place], pace_s: float, *, anew: int = 0) -> None:
        """Start the loop. With `anew`, the consumer begins at the start again after so many
        rounds."""
        self._task = self.spawn(self._run(places, pace_s, anew))

    async def stop(self) -> None:
        self.stopping = True
        if self._task is not None:
            await self._task

    async def _run(self, places: list[Place], pace_s: float, anew: int) -> None:
        rounds = 0
        while not self.stopping:
            rounds += 1
            if anew and rounds % anew == 0:
                self.positions.clear()
            for place in places:
                await self.pause(pace_s)
                await self.poll(place)

    async def read_all(self, place: Place, end: int) -> list[tuple[int, bytes]]:
        """Return the offset and the value of every record below `end`."""
        position = self.positions.setdefault(place, Position())
        while position.offset < end:
            if not await self.poll(place):
                await self.pause(BACKOFF_S)
        return position.records

    async def poll(self, place: Place) -> bool:
        """Fetch once from a partition. Return True if records came."""
        topic_id, leader = await self.leader(place)
        position = self.positions.setdefault(place, Position())
        source = self._source(position, leader)
        asked = FetchPartition(
            partition=place[1],
            current_leader_epoch=self.topics[place[0]].epochs[place[1]],
            fetch_offset=position.offset,
            partition_max_bytes=FETCH_BYTES,
        )
        topic = FetchTopic(topic=place[0], topic_id=topic_id, partitions=(asked,))
        request = FetchRequest(max_wait_ms=100, min_bytes=1, topics=(topic,))
        try:
            answer = await self.ask(source, request)
        except Unreachable:
            position.follower = None
            await self.refresh()
            return False
        error, data = answer.error_code, None
        if not error:
            (partition,) = answer.responses[0].partitions
            error, data = partition.error_code, partition
        if error:
            from_leader, position.follower = position.follower is None, None
            if not ErrorCode.of(error).retriable and (
                from_leader or error != ErrorCode.OFFSET_OUT_OF_RANGE
            ):
                name = ErrorCode.of(error).name
                raise Violation(f"{self.name} {place}: fetch at {position.offset} got {name}")
            await self.pause(BACKOFF_S)
            await self.refresh()
            return False
        assert data is not None
        if data.preferred_read_replica >= 0:
            self._send_away(place, position, data, source)
            return False
        if data.records and position.follower is not None:
            self._invariants.coverage["reads of records from followers"] += 1
        return self._take((topic_id, place[1]), position, data.records, data.high_watermark)

    def _source(self, position: Position, leader: int) -> int:
        if position.follower is None:
            return leader
        position.polls_left -= 1
        if position.polls_left < 0:
            position.follower = None
            return leader
        return position.follower

    def _send_away(self, place: Place, position: Position, data: Any, source: int) -> None:
        """Read from the follower that the leader names. The broker that names it may have been the
        last such follower, and may lead now."""
        if data.preferred_read_replica == source or data.records:
            raise Violation(f"{self.name} {place}: sent to the same broker, or with records")
        position.follower, position.polls_left = data.preferred_read_replica, POLLS_OF_A_FOLLOWER

    def _take(
        self, key: tuple[Uuid, int], position: Position, records: Any, high_watermark: int
    ) -> bool:
        if not records:
            return False
        data = bytes(records)
        for at, header in batches(data):
            if header.next_offset > high_watermark:
                raise Violation(
                    f"{self.name} {key[1]}: read {header.base_offset} to {header.next_offset}, "
                    f"the high watermark is {high_watermark}"
                )
            for record in self._records_of(data, at, header):
                if record.offset >= position.offset:
                    value = FOREIGN if record.value is None else bytes(record.value)
                    position.records.append((record.offset, value))
                    self._history.consumed += 1
        position.offset = self._invariants.committed(key).holds(self.name, data, high_watermark)
        return True

    def _records_of(self, data: bytes, at: int, header: BatchHeader) -> list[Record]:
        try:
            return list(records_of(data, at, header))
        except CorruptBatch:
            if not self._history.hostile_batches:
                raise
            payload = data[at + HEADER_BYTES : at + header.size_bytes]
            if not header.codec and not begins_with_a_record(payload):
                raise Violation(
                    f"{self.name}: the batch at {header.base_offset} holds no records"
                ) from None
            return []


def begins_with_a_record(payload: bytes) -> bool:
    """Return True if the length of the first record fits into an uncompressed payload. A broker
    stores no other batch, also from a hostile client."""
    length = shift = at = 0
    for byte in payload:
        length |= (byte & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if byte < 0x80:
            return length % 2 == 0 and 0 < length // 2 <= len(payload) - at
    return False
