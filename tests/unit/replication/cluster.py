"""Replica managers on simulated disks and a simulated network, with a scripted controller.

The controller contains no rule of the product: it applies ISR changes by compare-and-set, and gives
every broker the image.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Container
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

from quorate.broker.partition.settings import PartitionSettings
from quorate.broker.replication.directories.offline_directories import BrokerDirectories
from quorate.broker.replication.fetches.consumer_fetches import Fetch
from quorate.broker.replication.fetches.read_replicas import Reader
from quorate.broker.replication.partitions.hosted_partition import HostedPartition, Key
from quorate.broker.replication.partitions.replication_throttle import NO_PARTITIONS
from quorate.broker.replication.partitions.settings import ReplicationSettings, TopicSettings
from quorate.broker.replication.replica_manager import ReplicaManager
from quorate.quorum.controller.state.messages import IsrChange, IsrChangeResult
from quorate.quorum.ids import Uuid
from quorate.quorum.log.batches.batch import batches, build_batch
from quorate.quorum.log.batches.record import Record
from quorate.quorum.log.files.settings import LogSettings
from quorate.quorum.metadata.delta import Change, ImageDelta, TopicChange
from quorate.quorum.metadata.image import Broker, MetadataImage, Partition, Topic
from quorate.quorum.metadata.persistent_map import PersistentMap
from quorate.quorum.metadata.records import Endpoint
from quorate.quorum.protocol.apis import ApiKey
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.hot import (
    FetchPartition,
    FetchPartitionResult,
    ProducePartitionResult,
    build_fetch_response,
    parse_fetch_request,
)
from quorate.quorum.protocol.hot.produce import ProducePartition
from quorate.quorum.rpc.kafka.server import KafkaServer, RequestContext
from quorate.quorum.seams import Address, Listener, Seams, Wire
from tests.sim.world.clock import SimClock
from tests.sim.world.disk import SimDisk
from tests.sim.world.host import Host
from tests.sim.world.loop import SimLoop
from tests.sim.world.network import SimNetwork
from tests.sim.world.transport import SimTransport

LOG_DIR = "/data"
PORT = 9100
LISTENER = "PLAINTEXT"


OnAssigned = Callable[[int, Key, Uuid, Callable[[], None]], None]


def topic_uuid(number: int) -> Uuid:
    """Return an id that differs from all others in two characters at least."""
    return Uuid(2 * number.to_bytes(8, "big"))


@dataclass
class BrokerProcess:
    """One running broker process."""

    id: int
    epoch: int
    host: Host
    disk: SimDisk
    replicas: ReplicaManager
    listener: Listener
    seen: MetadataImage | None = None


def between(old: MetadataImage, new: MetadataImage) -> ImageDelta:
    """Return the delta that a replay of the records between the two images would give."""
    topics: dict[Uuid, tuple[Topic, dict[int, Change[Partition]]]] = {}
    for topic, index, value in new.all_partitions():
        before = old.partition(topic.id, index)
        if before != value:
            changes = topics.setdefault(topic.id, (topic, {}))[1]
            changes[index] = Change(before, value)
    return ImageDelta(
        brokers={
            broker_id: Change(old.brokers.get(broker_id), new.brokers.get(broker_id))
            for broker_id in sorted({*old.brokers, *new.brokers})
            if old.brokers.get(broker_id) != new.brokers.get(broker_id)
        },
        topics={
            topic_id: TopicChange(
                topic=topic, created=topic_id not in old.topics, partitions=changes
            )
            for topic_id, (topic, changes) in topics.items()
        },
        deleted={
            topic_id: old.topics[topic_id] for topic_id in old.topics if topic_id not in new.topics
        },
        configs=tuple(
            resource
            for resource in sorted({*old.configs, *new.configs})
            if old.configs.get(resource) != new.configs.get(resource)
        ),
    )


class Proposal(NamedTuple):
    broker_id: int
    epoch: int
    change: IsrChange
    done: Callable[[IsrChangeResult], None]


class ReplicaCluster:
    """Brokers' replica managers; the test changes the image that they follow."""

    def __init__(self, *, seed: int = 0, brokers: int = 3, **settings: Any) -> None:
        self.loop = SimLoop()
        self.random = random.Random(seed)
        self.network = SimNetwork(self.loop, self.random)
        self.image = MetadataImage()
        self.racks: dict[int, str] = settings.pop("racks", {})
        self.partition_settings = PartitionSettings(
            replica_lag_time_max_ms=settings.get("replica_lag_time_max_ms", 30_000)
        )
        self.log_settings = LogSettings()
        self.log_dirs: tuple[str, ...] = settings.pop("log_dirs", (LOG_DIR,))
        self.settings = ReplicationSettings(log_dirs=self.log_dirs, **settings)
        self.assigned: dict[tuple[int, Key], Uuid] = {}
        """The last reported directory of each replica, by broker id and key."""
        self.on_assigned: OnAssigned = lambda broker_id, key, directory, accepted: None
        """Called with each reported directory, and with the callback for its commit."""
        self.offline_dirs: list[tuple[int, str]] = []
        """The failed directories that brokers reported."""
        self.nodes: dict[int, BrokerProcess] = {}
        self.failures: list[BaseException] = []
        self.refuse_changes: ErrorCode | None = None
        self.lose_answers = False
        self.waiting: list[Proposal] = []
        self.settings_made: list[str] = []
        self.throttled: dict[str, Container[int]] = {}
        """The throttled partitions of each side, "leader" or "follower", of all topics."""
        self.fetched_by: Counter[str | None] = Counter()
        """The followers' fetches by client id."""
        self.unanswered: set[str | None] = set()
        """The client ids whose fetches get no answer."""
        self._next_epoch = 1
        self._next_topic = 1000
        for broker_id in range(1, brokers + 1):
            self.start(broker_id, SimDisk(self.random))

    # --- processes

    def start(self, broker_id: int, disk: SimDisk) -> BrokerProcess:
        host = self.network.boot(f"b{broker_id}")
        clock = SimClock(host)

        def later(callback: Callable[[], None]) -> None:
            clock.call_later(0.2, callback)

        disk._later = later
        epoch, self._next_epoch = self._next_epoch, self._next_epoch + 1
        seams = Seams(clock, random.Random(broker_id), SimTransport(self.network, host), disk)

        def failed(error: BaseException) -> None:
            if not replicas.survives(error):
                self.failures.append(error)

        replicas = ReplicaManager(
            seams,
            self.settings,
            broker_id,
            topic_settings=self.topic_settings,
            propose=partial(self.propose, broker_id, epoch),
            broker_epoch=lambda: epoch,
            address_of=lambda leader: Address(f"b{leader}", PORT),
            on_failure=failed,
            directories=self.directories(broker_id),
        )

        def serve(context: RequestContext, body: memoryview) -> None:
            self.fetched_by[context.client_id] += 1
            if context.client_id in self.unanswered:
                return
            request = parse_fetch_request(body, context.version)
            replicas.replica_sessions.fetch(
                request,
                lambda error, session_id, partitions: context.respond_raw(
                    *build_fetch_response(
                        context.version, partitions, error=error, session_id=session_id
                    )
                ),
                context.client_id,
            )

        server = KafkaServer({}, clock, raw_handlers={ApiKey.FETCH: serve})
        listener = self.loop.run(
            SimTransport(self.network, host).listen(
                Address(f"b{broker_id}", PORT),
                {Wire.KAFKA: server.accept},
                max_frame_bytes=1 << 26,
            )
        )
        node = self.nodes[broker_id] = BrokerProcess(
            broker_id, epoch, host, disk, replicas, listener
        )
        self.register(broker_id, epoch)
        replicas.start()
        self.spread()
        return node

    def directory_id(self, broker_id: int, path: str) -> Uuid:
        """Return the id of a broker's log directory. Broker 2 has 1002000 + its position."""
        return topic_uuid(1_000_000 + 1000 * broker_id + self.log_dirs.index(path))

    def directories(self, broker_id: int) -> BrokerDirectories:
        if len(self.log_dirs) == 1:
            return BrokerDirectories()

        def assign(key: Key, directory: Uuid, accepted: Callable[[], None]) -> None:
            self.assigned[broker_id, key] = directory
            self.on_assigned(broker_id, key, directory, accepted)

        return BrokerDirectories(
            ids={path: self.directory_id(broker_id, path) for path in self.log_dirs},
            metadata_dir="/metadata",
            on_offline=lambda path: self.offline_dirs.append((broker_id, path)),
            assign=assign,
        )

    def register(self, broker_id: int, epoch: int) -> None:
        broker = Broker(
            id=broker_id,
            epoch=epoch,
            incarnation_id=topic_uuid(epoch),
            endpoints=(Endpoint(name=LISTENER, host=f"b{broker_id}", port=9092),),
            rack=self.racks.get(broker_id),
            fenced=False,
        )
        self.image = self.image._replace(brokers=self.image.brokers.insert(broker_id, broker))

    def topic_settings(self, image: MetadataImage, topic: str) -> TopicSettings:
        self.settings_made.append(topic)
        return TopicSettings(
            partition=self.partition_settings,
            log=self.log_settings,
            leader_throttled=self.throttled.get("leader", NO_PARTITIONS),
            follower_throttled=self.throttled.get("follower", NO_PARTITIONS),
        )

    def kill(self, broker_id: int) -> SimDisk:
        """Kill a process. Its writes stay in the page cache. Return its disk."""
        node = self.nodes.pop(broker_id)
        self.network.crash(node.host)
        return node.disk.restart()

    def cut_power(self, broker_id: int) -> SimDisk:
        node = self.nodes.pop(broker_id)
        self.network.crash(node.host)
        return node.disk.crash()

    def shut_down(self, broker_id: int) -> SimDisk:
        node = self.nodes[broker_id]
        ended: list[BaseException | None] = []
        node.replicas.close(ended.append)
        self.run(100)
        assert ended == [None]
        return self.kill(broker_id)

    def run(self, ms: float) -> None:
        self.loop.run_for(ms / 1000)
        self.loop.raise_failure()
        assert not self.failures, self.failures

    # --- the controller

    def create(self, name: str, partitions: list[Partition]) -> Uuid:
        self._next_topic += 1
        topic_id = topic_uuid(self._next_topic)
        topic = Topic(id=topic_id, name=name, partitions=PersistentMap(enumerate(partitions)))
        self.image = self.image._replace(
            topics=self.image.topics.insert(topic_id, topic),
            topic_ids=self.image.topic_ids.insert(name, topic_id),
        )
        self.spread()
        return topic_id

    def delete(self, name: str) -> None:
        topic_id = self.image.topic_ids[name]
        self.image = self.image._replace(
            topics=self.image.topics.remove(topic_id),
            topic_ids=self.image.topic_ids.remove(name),
        )
        self.spread()

    def change(self, topic_id: Uuid, partition_id: int = 0, **fields: Any) -> Partition:
        """Append one change record: the partition epoch rises, and with a `leader` the leader
        epoch, too."""
        old = self.image.topics[topic_id].partitions[partition_id]
        fields["partition_epoch"] = old.partition_epoch + 1
        if "leader" in fields:
            fields["leader_epoch"] = old.leader_epoch + 1
        new = replace(old, **fields)
        topic = self.image.topics[topic_id]
        topic = replace(topic, partitions=topic.partitions.insert(partition_id, new))
        self.image = self.image._replace(topics=self.image.topics.insert(topic_id, topic))
        return new

    def spread(self, *broker_ids: int) -> None:
        """Give the image to these brokers, or to all."""
        for broker_id in broker_ids or list(self.nodes):
            node = self.nodes[broker_id]
            if node.seen is self.image:
                continue
            delta = between(node.seen or MetadataImage(), self.image)
            node.seen = self.image
            node.host.call_soon(partial(node.replicas.apply, self.image, delta))

    def propose(
        self,
        broker_id: int,
        epoch: int,
        change: IsrChange,
        done: Callable[[IsrChangeResult], None],
    ) -> bool:
        if not self.waiting:
            self.loop.call_later(0.001, self.answer)
        self.waiting.append(Proposal(broker_id, epoch, change, done))
        return True

    def answer(self) -> None:
        """Decide on the proposals. If the answer is lost, decide again, as the sender repeats the
        request."""
        waiting, self.waiting = self.waiting, []
        for proposal in waiting:
            node = self.nodes.get(proposal.broker_id)
            if node is None or node.epoch != proposal.epoch:
                continue
            result = self.rule(proposal.change)
            if self.lose_answers:
                if not self.waiting:
                    self.loop.call_later(0.05, self.answer)
                self.waiting.append(proposal)
            else:
                proposal.done(result)
        self.spread()

    def rule(self, change: IsrChange) -> IsrChangeResult:
        def refused(error: ErrorCode) -> IsrChangeResult:
            return IsrChangeResult(
                topic_id=change.topic_id, partition_id=change.partition_id, error=error
            )

        if self.refuse_changes is not None:
            return refused(self.refuse_changes)
        now = self.image.partition(change.topic_id, change.partition_id)
        if now is None:
            return refused(ErrorCode.UNKNOWN_TOPIC_ID)
        if change.leader_epoch != now.leader_epoch:
            return refused(ErrorCode.FENCED_LEADER_EPOCH)
        if change.partition_epoch != now.partition_epoch:
            return refused(ErrorCode.INVALID_UPDATE_VERSION)
        for broker_id, epoch in change.isr:
            broker = self.image.brokers[broker_id]
            if not broker.active or epoch not in (-1, broker.epoch):
                return refused(ErrorCode.INELIGIBLE_REPLICA)
        isr = tuple(each for each, _ in change.isr)
        new = self.change(change.topic_id, change.partition_id, isr=isr)
        return IsrChangeResult(
            topic_id=change.topic_id,
            partition_id=change.partition_id,
            error=0,
            leader=new.leader,
            leader_epoch=new.leader_epoch,
            partition_epoch=new.partition_epoch,
            isr=new.isr,
        )

    # --- clients

    def hosted(self, broker_id: int, topic_id: Uuid, partition_id: int = 0) -> HostedPartition:
        hosted = self.nodes[broker_id].replicas.registry.get((topic_id, partition_id))
        assert hosted is not None
        return hosted

    def produce(
        self,
        broker_id: int,
        topic_id: Uuid,
        value: bytes = b"v",
        *,
        partition_id: int = 0,
        acks: int = -1,
        timeout_ms: int = 30_000,
        producer: dict[str, Any] | None = None,
        timestamp_ms: int = 1_700_000_000_000,
    ) -> list[ProducePartitionResult]:
        """Send one record. Return the list to which the answers are added."""
        record = Record(0, timestamp_ms, None, value)
        data = build_batch([record], leader_epoch=0, **(producer or {}))
        answers: list[ProducePartitionResult] = []
        append = ProducePartition("", topic_id, partition_id, memoryview(data))
        self.nodes[broker_id].replicas.append([append], acks, timeout_ms, answers.extend)
        return answers

    def fetch(
        self,
        broker_id: int,
        topic_id: Uuid,
        offset: int = 0,
        *,
        partition_id: int = 0,
        max_wait_ms: int = 0,
        min_bytes: int = 1,
        leader_epoch: int = -1,
        replica_id: int = -1,
        rack: str | None = None,
    ) -> list[FetchPartitionResult]:
        """Fetch without a session. With a `rack`, even "", the request is one of version 11 or
        later."""
        answers: list[FetchPartitionResult] = []
        wanted = FetchPartition("", topic_id, partition_id, offset, 1 << 20, leader_epoch)
        self.nodes[broker_id].replicas.consumer_fetches.fetch(
            Fetch(
                partitions=[wanted],
                replica_id=replica_id,
                max_wait_ms=max_wait_ms,
                min_bytes=min_bytes,
                max_bytes=1 << 20,
                reader=None if rack is None else Reader(rack, LISTENER),
            ),
            answers.extend,
        )
        return answers

    def offsets(self, topic_id: Uuid, partition_id: int = 0) -> dict[int, tuple[int, int]]:
        """Return (log end, high watermark) of each replica."""
        return {
            broker_id: (hosted.log.end_offset, hosted.partition.high_watermark)
            for broker_id, node in self.nodes.items()
            if (hosted := node.replicas.registry.get((topic_id, partition_id))) is not None
        }

    def content(self, broker_id: int, topic_id: Uuid, partition_id: int = 0) -> list[bytes]:
        log = self.hosted(broker_id, topic_id, partition_id).log
        out, offset = [], log.start_offset
        while offset < log.end_offset:
            data = log.read(offset, 1 << 20)
            for position, header in batches(data):
                out.append(bytes(data[position : position + header.size_bytes]))
                offset = header.next_offset
        return out

    def close(self) -> None:
        for broker_id in list(self.nodes):
            self.kill(broker_id)
        self.loop.close()


def led_by(leader: int, *others: int, isr: tuple[int, ...] | None = None) -> Partition:
    replicas = (leader, *others)
    return Partition(
        replicas=replicas, isr=replicas if isr is None else isr, leader=leader, leader_epoch=0
    )
