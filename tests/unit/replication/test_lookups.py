"""ListOffsets by time: in slices, with large batches decompressed off the loop, past undecodable
batches.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import cast

import pytest

from quorate.broker.kafka.records.describe_producers import DescribeProducersHandler
from quorate.broker.kafka.records.list_offsets import CONSUMER, ListOffsetsHandler
from quorate.broker.kafka.records.log_lookups import LogLookups
from quorate.broker.replication.partitions import producer_loader
from quorate.quorum.ids import Uuid
from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.log.batches.batch import (
    HEADER_BYTES,
    assemble,
    assign,
    build_batch,
    read_header,
)
from quorate.quorum.log.batches.compression import Codec, compress, decompress
from quorate.quorum.log.batches.record import Record
from quorate.quorum.log.files.errors import CorruptLog
from quorate.quorum.log.segments import timestamp_lookup as lookup
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.hot.produce import ProducePartition, ProducePartitionResult
from quorate.quorum.protocol.schemas.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    TopicRequest,
)
from quorate.quorum.protocol.schemas.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from quorate.quorum.rpc.kafka.server import RequestContext
from quorate.quorum.seams import Buffer
from tests.attacks.batches import INT32_MAX, sealed
from tests.attacks.bombs import bombs
from tests.attacks.poison import POISON
from tests.unit.replication.cluster import ReplicaCluster, led_by

WHEN_MS = 1_700_000_000_000
COUNT = 4_000


@dataclass
class Asked:
    """A double of a request's context, which runs all steps immediately."""

    version: int = 7
    closed: bool = False
    parts: object = None
    answers: list[ListOffsetsResponse] = field(default_factory=list)
    failures: list[Exception] = field(default_factory=list)
    described: list[DescribeProducersResponse] = field(default_factory=list)

    def respond_steps(
        self, response: ListOffsetsResponse | DescribeProducersResponse
    ) -> IncrementalWork[None]:
        if isinstance(response, ListOffsetsResponse):
            self.answers.append(response)
        else:
            self.described.append(response)
        yield from ()

    def run(self, steps: IncrementalWork[None]) -> None:
        try:
            for _ in steps:
                pass
        except Exception as error:
            self.failures.append(error)

    def callback(self, function: Callable[..., None]) -> Callable[..., None]:
        return function

    @property
    def found(self) -> list[tuple[ErrorCode, int]]:
        assert not self.failures
        (answer,) = self.answers
        partitions = [each for topic in answer.topics for each in topic.partitions]
        return [(ErrorCode.of(each.error_code), each.offset) for each in partitions]


@pytest.fixture
def cluster() -> Iterator[ReplicaCluster]:
    cluster = ReplicaCluster(brokers=1)
    yield cluster
    cluster.close()


def ask(cluster: ReplicaCluster, lookups: LogLookups, *wanted: tuple[int, int]) -> Asked:
    """Ask for (partition, timestamp) pairs of topic t."""
    handler = ListOffsetsHandler(cluster.nodes[1].replicas, lookups)
    partitions = tuple(
        ListOffsetsPartition(partition_index=index, timestamp=when) for index, when in wanted
    )
    asked = Asked()
    request = ListOffsetsRequest(
        replica_id=CONSUMER, topics=(ListOffsetsTopic(name="t", partitions=partitions),)
    )
    rest = handler.list_offsets(cast(RequestContext, asked), request)
    if rest is not None:
        asked.run(rest)
    return asked


@pytest.mark.parametrize(("timestamp", "version"), [(-6, 9), (-9, 10), (-5, 8), (-4, 7), (-3, 6)])
def test_an_unknown_special_timestamp_is_no_time(
    cluster: ReplicaCluster, timestamp: int, version: int
) -> None:
    """Kafka answers UNSUPPORTED_VERSION, also to -6, which clients of Kafka 4.2 send. As a time in
    ms, it would find the first record."""
    topic = cluster.create("t", [led_by(1)])
    cluster.run(50)
    cluster.produce(1, topic)
    handler = ListOffsetsHandler(cluster.nodes[1].replicas)
    wanted = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    asked = Asked(version=version)
    request = ListOffsetsRequest(
        replica_id=CONSUMER, topics=(ListOffsetsTopic(name="t", partitions=(wanted,)),)
    )
    rest = handler.list_offsets(cast(RequestContext, asked), request)
    if rest is not None:
        asked.run(rest)
    assert asked.found == [(ErrorCode.UNSUPPORTED_VERSION, -1)]


def test_a_search_in_a_failed_directory_is_answered() -> None:
    """Without an answer, every later request of the connection would wait for its own."""
    cluster = ReplicaCluster(brokers=1, log_dirs=("/a", "/b"))
    cluster.create("t", [led_by(1), led_by(1)])
    cluster.run(50)
    for index in range(2):
        produce_large(cluster, cluster.image.topic_ids["t"], index)

    def before(operation: str, path: str) -> None:
        if path.startswith("/b/"):
            raise OSError(errno.EIO, "EIO", path)

    cluster.nodes[1].disk.before = before
    asked = ask(cluster, LogLookups(), (1, WHEN_MS), (0, WHEN_MS))
    cluster.run(50)
    assert asked.found == [(ErrorCode.KAFKA_STORAGE_ERROR, -1), (ErrorCode.NONE, 0)]
    assert cluster.nodes[1].replicas.logs.offline == ("/b",)
    cluster.close()


def produce_large(cluster: ReplicaCluster, topic: Uuid, partition: int = 0) -> None:
    """Append a batch that is too large for a lookup to decompress on the event loop."""
    records = [Record(at, WHEN_MS + at, None, b"%06d" % at * 20) for at in range(COUNT)]
    data = build_batch(records, leader_epoch=0, codec=Codec.ZSTD)
    answers: list[object] = []
    wanted = ProducePartition("", topic, partition, memoryview(data))
    cluster.nodes[1].replicas.append([wanted], 1, 1_000, answers.extend)
    assert answers


def store(cluster: ReplicaCluster, topic: Uuid, data: bytes, partition: int = 0) -> None:
    """Append a batch that a leader accepted before it checked payloads."""
    hosted = cluster.hosted(1, topic, partition)
    copy = bytearray(data)
    assign(copy, hosted.log.end_offset, hosted.partition.leader_epoch)
    hosted.log.append(copy, wall_ms=WHEN_MS)
    hosted.partition.high_watermark = hosted.log.end_offset


def test_a_large_payload_is_never_opened_on_the_loop(
    cluster: ReplicaCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The decompression of a megabyte of empty gzip members takes 90 ms."""
    opened: list[int] = []

    def watched(codec: int, payload: Buffer, max_bytes: int | None = None) -> Buffer:
        opened.append(len(payload))
        return decompress(codec, payload, max_bytes)

    monkeypatch.setattr(lookup, "decompress", watched)
    topic = cluster.create("t", [led_by(1)])
    cluster.run(50)
    store(cluster, topic, sealed(compress(Codec.GZIP, b"") * 50_000, attributes=Codec.GZIP))
    lookups = LogLookups()
    asked = ask(cluster, lookups, (0, WHEN_MS))
    cluster.run(50)
    assert asked.found == [(ErrorCode.CORRUPT_MESSAGE, -1)]
    assert not opened and lookups.expanded == 1


@pytest.mark.parametrize("base_ms", [-(2**63), 2**63 - 1])
def test_impossible_timestamps_of_a_producer_do_not_matter_with_log_append_time(
    cluster: ReplicaCluster, base_ms: int
) -> None:
    """The leader replaces them. One such batch made all lookups by time fail for the partition."""
    cluster.partition_settings = replace(cluster.partition_settings, log_append_time=True)
    topic = cluster.create("t", [led_by(1)])
    cluster.run(50)
    good = build_batch([Record(0, WHEN_MS, None, b"v")], leader_epoch=0)
    header = read_header(good)._replace(base_timestamp_ms=base_ms, max_timestamp_ms=base_ms)
    answers: list[ProducePartitionResult] = []
    sent = assemble(good[HEADER_BYTES:], header)
    append = ProducePartition("", topic, 0, memoryview(sent))
    cluster.nodes[1].replicas.append([append], 1, 1_000, answers.extend)
    assert [each.error for each in answers] == [0]
    asked = ask(cluster, LogLookups(), (0, 0))
    cluster.run(50)
    assert asked.found == [(ErrorCode.NONE, 0)]


def test_a_large_batch_is_opened_off_the_loop(cluster: ReplicaCluster) -> None:
    topic = cluster.create("t", [led_by(1)])
    cluster.run(50)
    produce_large(cluster, topic)
    lookups = LogLookups()
    asked = ask(cluster, lookups, (0, WHEN_MS + 1_234))
    assert not asked.answers, "the disk's thread has the payload"
    cluster.run(50)
    assert asked.found == [(ErrorCode.NONE, 1_234)]
    assert lookups.expanded == 1


def test_one_lookup_at_a_time_holds_a_large_payload(cluster: ReplicaCluster) -> None:
    topic = cluster.create("t", [led_by(1), led_by(1)])
    cluster.run(50)
    for partition in range(2):
        produce_large(cluster, topic, partition)
    lookups = LogLookups()
    first = ask(cluster, lookups, (0, WHEN_MS + 1))
    second = ask(cluster, lookups, (1, WHEN_MS + 2), (0, WHEN_MS + 3))
    gone = ask(cluster, lookups, (0, WHEN_MS + 4))
    last = ask(cluster, lookups, (1, WHEN_MS + 5))
    assert lookups.expanded == 1
    gone.closed = True
    cluster.run(50)
    assert first.found == [(ErrorCode.NONE, 1)]
    assert second.found == [(ErrorCode.NONE, 2), (ErrorCode.NONE, 3)]
    assert last.found == [(ErrorCode.NONE, 5)], "a connection that ended holds nobody up"
    assert not gone.answers and lookups.expanded == 4


def test_steps_that_are_closed_let_the_next_lookup_continue(cluster: ReplicaCluster) -> None:
    topic = cluster.create("t", [led_by(1)])
    cluster.run(50)
    produce_large(cluster, topic)
    lookups = LogLookups()
    begun: list[IncrementalWork[None]] = []
    handler = ListOffsetsHandler(cluster.nodes[1].replicas, lookups)
    asked = Asked()
    asked.run = begun.append  # type: ignore[method-assign, assignment]
    wanted = ListOffsetsPartition(partition_index=0, timestamp=WHEN_MS + COUNT - 1)
    request = ListOffsetsRequest(
        replica_id=CONSUMER, topics=(ListOffsetsTopic(name="t", partitions=(wanted,)),)
    )
    assert handler.list_offsets(cast(RequestContext, asked), request) is None
    cluster.run(50)
    (steps,) = begun
    next(steps)
    other = ask(cluster, lookups, (0, WHEN_MS))
    assert not other.answers
    steps.close()
    cluster.run(50)
    assert other.found == [(ErrorCode.NONE, 0)] and not asked.answers


@pytest.mark.parametrize("name", [*POISON, *bombs(quick=True)])
def test_poison_that_is_stored_fails_its_partition_only(
    cluster: ReplicaCluster, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    if name in POISON:
        data = POISON[name]
    else:
        codec, payload = bombs(quick=True)[name]
        data = sealed(payload, attributes=codec)
    if name in ("length beyond", "length below", "wrong checksum", "magic 1", "two batches"):
        return  # no log ever took them
    if name in ("great delta", "negative count"):
        data = POISON["empty that claims 2^31-1"]
    topic = cluster.create("t", [led_by(1), led_by(1)])
    cluster.run(50)
    store(cluster, topic, data)
    produce_large(cluster, topic, 1)
    times = (0, WHEN_MS, WHEN_MS + 2, -3, 2**63 - 1)
    for when in times * 2:
        asked = ask(cluster, LogLookups(), (0, when), (1, WHEN_MS))
        cluster.run(50)
        poisoned, sound = asked.found
        assert poisoned[0] in (ErrorCode.NONE, ErrorCode.CORRUPT_MESSAGE)
        assert sound == (ErrorCode.NONE, 0)
    lines = [each for each in caplog.records if "cannot be read" in each.getMessage()]
    assert len(lines) <= 2, "it is said once, not at each request"
    assert cluster.hosted(1, topic).log.end_offset <= INT32_MAX


def test_garbage_is_answered_corrupt_message(cluster: ReplicaCluster) -> None:
    topic = cluster.create("t", [led_by(1)])
    cluster.run(50)
    store(cluster, topic, POISON["garbage"])
    asked = ask(cluster, LogLookups(), (0, WHEN_MS))
    assert asked.found == [(ErrorCode.CORRUPT_MESSAGE, -1)]


@pytest.mark.parametrize("alone", [True, False])
def test_producers_that_cannot_be_read_from_a_damaged_log(
    cluster: ReplicaCluster, alone: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Alone in the ISR, the broker refuses the read; otherwise the node stops."""
    topic = cluster.create("t", [led_by(1) if alone else led_by(1, 2)])
    cluster.run(50)
    damage = CorruptLog("/data/t-0/0.log", 0, 0, "no valid batch")

    def damaged(*arguments: object) -> None:
        raise damage

    monkeypatch.setattr(producer_loader, "newest_snapshot", damaged)
    cluster.hosted(1, topic).partition.producers.loaded = None
    handler = DescribeProducersHandler(cluster.nodes[1].replicas)
    asked = Asked()
    request = DescribeProducersRequest(topics=(TopicRequest(name="t", partition_indexes=(0,)),))
    handler.handle(cast(RequestContext, asked), request)
    cluster.loop.run_for(0.05)
    (answer,) = asked.described
    if not alone:
        assert cluster.failures == [damage]
        return
    assert cluster.failures == []
    assert answer.topics[0].partitions[0].error_code == ErrorCode.CORRUPT_MESSAGE
