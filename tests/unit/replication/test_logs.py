"""DeleteRecords, DescribeLogDirs and DescribeProducers over replicas of a simulated network."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from quorate.broker.kafka.admin.describe_log_dirs import DescribeLogDirsHandler, volume_bytes
from quorate.broker.kafka.records.delete_records import DeleteRecordsHandler
from quorate.broker.kafka.records.describe_producers import DescribeProducersHandler
from quorate.broker.partition.settings import PartitionSettings
from quorate.broker.replication.appends.delete_records import DeletionRequest, DeletionResult
from quorate.quorum.ids import Uuid
from quorate.quorum.incremental_work import IncrementalWork, finished
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.describe_producers import (
    DescribeProducersRequest,
    TopicRequest,
)
from quorate.quorum.protocol.schemas.log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
)
from quorate.quorum.protocol.schemas.topics import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from quorate.quorum.rpc.kafka.server import RequestContext
from tests.unit.replication.cluster import ReplicaCluster, led_by

MakeCluster = Callable[..., ReplicaCluster]


@pytest.fixture
def cluster(make_cluster: MakeCluster) -> ReplicaCluster:
    return make_cluster()


class Asked:
    """A double of a request's context, which keeps the answer."""

    def __init__(self) -> None:
        self.answer: Any = None

    def respond(self, response: object) -> None:
        self.answer = response

    def respond_steps(self, response: object) -> IncrementalWork[None]:
        self.respond(response)
        yield from ()

    def callback(self, function: Any) -> Any:
        return function

    def run(self, steps: IncrementalWork[None]) -> None:
        finished(steps)

    @property
    def context(self) -> RequestContext:
        return cast(RequestContext, self)


def produced(cluster: ReplicaCluster, topic: Uuid, count: int) -> None:
    answers = [cluster.produce(1, topic, b"v%d" % index) for index in range(count)]
    cluster.run(50)
    assert [each[0].error for each in answers] == [0] * count


def deleted(
    cluster: ReplicaCluster, topic: str, offset: int, timeout_ms: int = 5000
) -> list[DeletionResult]:
    answers: list[DeletionResult] = []
    wanted = [DeletionRequest(topic, 0, offset)]
    cluster.nodes[1].replicas.delete_records(wanted, timeout_ms, answers.extend)
    return answers


def test_deleted_records_are_gone_on_every_in_sync_replica(cluster: ReplicaCluster) -> None:
    topic = cluster.create("t", [led_by(1, 2, 3)])
    cluster.run(50)
    produced(cluster, topic, count=5)
    answers = deleted(cluster, "t", 3)
    assert not answers, "the followers have not got it"
    cluster.run(100)  # well below replica.fetch.wait.max.ms: followers learn it immediately
    assert answers == [DeletionResult(3, ErrorCode.NONE)]
    assert [cluster.hosted(each, topic).log.start_offset for each in (1, 2, 3)] == [3, 3, 3]
    assert cluster.fetch(1, topic, 2)[0].error == ErrorCode.OFFSET_OUT_OF_RANGE
    again = deleted(cluster, "t", 1)
    assert again == [DeletionResult(3, ErrorCode.NONE)], "nothing comes back"
    everything = deleted(cluster, "t", -1)
    cluster.run(100)
    assert everything == [DeletionResult(5, ErrorCode.NONE)]


def test_what_is_not_committed_is_not_deleted(cluster: ReplicaCluster) -> None:
    topic = cluster.create("t", [led_by(1, 2, 3)])
    cluster.run(50)
    produced(cluster, topic, count=2)
    assert deleted(cluster, "t", 3) == [DeletionResult(-1, ErrorCode.OFFSET_OUT_OF_RANGE)]
    assert deleted(cluster, "t", -2) == [DeletionResult(-1, ErrorCode.OFFSET_OUT_OF_RANGE)]
    assert deleted(cluster, "u", 0) == [DeletionResult(-1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]


def test_a_deletion_waits_for_the_isr_and_times_out(cluster: ReplicaCluster) -> None:
    topic = cluster.create("t", [led_by(1, 2, 3)])
    cluster.run(50)
    produced(cluster, topic, count=2)
    cluster.network.isolate("b2")
    answers = deleted(cluster, "t", 2, timeout_ms=300)
    cluster.run(350)
    assert answers == [DeletionResult(-1, ErrorCode.REQUEST_TIMED_OUT)]


def test_a_deletion_ends_with_the_leadership(cluster: ReplicaCluster) -> None:
    topic = cluster.create("t", [led_by(1, 2, 3)])
    cluster.run(50)
    produced(cluster, topic, count=2)
    cluster.network.isolate("b2")
    answers = deleted(cluster, "t", 2)
    cluster.change(topic, leader=3)
    cluster.spread()
    cluster.run(50)
    assert answers == [DeletionResult(-1, ErrorCode.NOT_LEADER_OR_FOLLOWER)]


def test_what_is_only_compacted_keeps_its_records(cluster: ReplicaCluster) -> None:
    topic = cluster.create("t", [led_by(1)])
    cluster.run(50)
    produced(cluster, topic, count=1)
    partition = cluster.hosted(1, topic).partition
    partition.configure(PartitionSettings(compacted=True, deletes=False), 0)
    assert deleted(cluster, "t", 1) == [DeletionResult(-1, ErrorCode.POLICY_VIOLATION)]
    partition.configure(PartitionSettings(compacted=True, deletes=True), 0)
    assert deleted(cluster, "t", 1) == [DeletionResult(1, ErrorCode.NONE)]


def test_answers_are_in_the_order_of_the_request(cluster: ReplicaCluster) -> None:
    topic = cluster.create("t", [led_by(1)])
    cluster.run(50)
    produced(cluster, topic, count=2)
    asked = Asked()
    handler = DeleteRecordsHandler(cluster.nodes[1].replicas)
    request = DeleteRecordsRequest(
        topics=tuple(
            DeleteRecordsTopic(
                name=name, partitions=(DeleteRecordsPartition(partition_index=0, offset=1),)
            )
            for name in ("__consumer_offsets", "t", "absent")
        ),
        timeout_ms=1000,
    )
    handler.handle(asked.context, request)
    assert [
        (each.name, each.partitions[0].error_code, each.partitions[0].low_watermark)
        for each in asked.answer.topics
    ] == [
        ("__consumer_offsets", ErrorCode.INVALID_TOPIC_EXCEPTION, -1),
        ("t", ErrorCode.NONE, 1),
        ("absent", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
    ]


def test_log_directories(cluster: ReplicaCluster) -> None:
    topic = cluster.create("t", [led_by(1), led_by(1), led_by(2)])
    cluster.run(50)
    produced(cluster, topic, count=1)
    handler = DescribeLogDirsHandler(cluster.nodes[1].replicas)
    wanted = (DescribableLogDirTopic(topic="t", partitions=(1, 7)),)
    found = []
    for topics in (None, wanted, ()):
        asked = Asked()
        handler.handle(asked.context, DescribeLogDirsRequest(topics=topics))
        (directory,) = asked.answer.results
        assert directory.log_dir == "/data"
        found.append([each.partition_index for t in directory.topics for each in t.partitions])
        if topics is None:
            sizes = [each.partition_size for each in directory.topics[0].partitions]
            assert sizes[0] == cluster.hosted(1, topic).log.size_bytes > 0 == sizes[1]
    assert found == [[0, 1], [1], []]


def test_the_space_of_a_volume(tmp_path: Path) -> None:
    total_bytes, usable_bytes = volume_bytes(str(tmp_path))
    assert total_bytes >= usable_bytes > 0
    assert volume_bytes(str(tmp_path / "absent")) == (-1, -1)


def test_producers(cluster: ReplicaCluster) -> None:
    topic = cluster.create("t", [led_by(1, 2)])
    cluster.run(50)
    producer = {"producer_id": 9, "producer_epoch": 3, "base_sequence": 0}
    cluster.produce(1, topic, producer=producer)
    asked = Asked()
    request = DescribeProducersRequest(topics=(TopicRequest(name="t", partition_indexes=(0, 5)),))
    DescribeProducersHandler(cluster.nodes[1].replicas).handle(asked.context, request)
    led, absent = asked.answer.topics[0].partitions
    (found,) = led.active_producers
    assert (found.producer_id, found.producer_epoch, found.last_sequence) == (9, 3, 0)
    assert absent.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    cluster.run(50)
    DescribeProducersHandler(cluster.nodes[2].replicas).handle(asked.context, request)
    follower = asked.answer.topics[0].partitions[0]
    assert [each.producer_id for each in follower.active_producers] == [9]
