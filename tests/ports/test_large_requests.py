"""A node handles requests with many items in steps, in linear time, and answers them completely."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from quorate.broker.kafka.records.produce import PARTITIONS_PER_STEP
from quorate.broker.kafka.shared.request_parts import PARTITIONS_PER_PART
from quorate.quorum.protocol.apis import APIS
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas import (
    cluster,
    configs,
    describe_producers,
    fetch,
    group_admin,
    group_offsets,
    list_offsets,
    log_dirs,
    metadata,
    offset_for_leader_epoch,
    produce,
    topics,
)
from quorate.quorum.protocol.schemas.find_coordinator import FindCoordinatorRequest
from quorate.quorum.protocol.wire import Message
from tests.ports.node import BROKER_PORT, PortCluster, running
from tests.ports.requests import READ, World, batch

QUADRATIC = 10
"""The CPU time for 4n items over that for n: 4 is linear and 16 is quadratic."""
TRIES = 3
MIN_S = 0.02
MANY = 4 * PARTITIONS_PER_PART + 7


@pytest.fixture(scope="module")
def world() -> Iterator[tuple[PortCluster, World]]:
    with running() as node:
        yield node, node.prepared()


def names(count: int) -> tuple[str, ...]:
    return tuple(f"n{each}" for each in range(count))


def metadata_of(count: int) -> Message:
    wanted = tuple(metadata.MetadataRequestTopic(name=each) for each in names(count))
    return metadata.MetadataRequest(topics=wanted, allow_auto_topic_creation=False)


def coordinators(count: int) -> Message:
    return FindCoordinatorRequest(coordinator_keys=names(count))


def described_groups(count: int) -> Message:
    return group_admin.DescribeGroupsRequest(groups=names(count))


def deleted_groups(count: int) -> Message:
    return group_admin.DeleteGroupsRequest(groups_names=names(count))


def listed_offsets(count: int) -> Message:
    partitions = tuple(
        list_offsets.ListOffsetsPartition(partition_index=each, timestamp=0)
        for each in range(count)
    )
    topic = list_offsets.ListOffsetsTopic(name=READ, partitions=partitions)
    return list_offsets.ListOffsetsRequest(replica_id=-1, topics=(topic,))


def epoch_ends(count: int) -> Message:
    partitions = tuple(
        offset_for_leader_epoch.OffsetForLeaderPartition(partition=each, leader_epoch=0)
        for each in range(count)
    )
    topic = offset_for_leader_epoch.OffsetForLeaderTopic(topic=READ, partitions=partitions)
    return offset_for_leader_epoch.OffsetForLeaderEpochRequest(topics=(topic,))


def committed(count: int) -> Message:
    partitions = tuple(
        group_offsets.OffsetCommitRequestPartition(partition_index=each, committed_offset=each)
        for each in range(count)
    )
    topic = group_offsets.OffsetCommitRequestTopic(name=READ, partitions=partitions)
    return group_offsets.OffsetCommitRequest(group_id="g", member_id="", topics=(topic,))


def fetched_offsets(count: int) -> Message:
    topic = group_offsets.OffsetFetchRequestTopics(name=READ, partition_indexes=tuple(range(count)))
    group = group_offsets.OffsetFetchRequestGroup(group_id="g", topics=(topic,))
    return group_offsets.OffsetFetchRequest(groups=(group,))


def fetched_offsets_of_one_group(count: int) -> Message:
    topic = group_offsets.OffsetFetchRequestTopic(name=READ, partition_indexes=tuple(range(count)))
    return group_offsets.OffsetFetchRequest(group_id="g", topics=(topic,))


def deleted_offsets(count: int) -> Message:
    partitions = tuple(
        group_offsets.OffsetDeleteRequestPartition(partition_index=each) for each in range(count)
    )
    topic = group_offsets.OffsetDeleteRequestTopic(name=READ, partitions=partitions)
    return group_offsets.OffsetDeleteRequest(group_id="g", topics=(topic,))


def deleted_records(count: int) -> Message:
    partitions = tuple(
        topics.DeleteRecordsPartition(partition_index=each + 100, offset=0) for each in range(count)
    )
    topic = topics.DeleteRecordsTopic(name=READ, partitions=partitions)
    return topics.DeleteRecordsRequest(topics=(topic,), timeout_ms=1000)


def described_configs(count: int) -> Message:
    resources = tuple(
        configs.DescribeConfigsResource(
            resource_type=2, resource_name=each, configuration_keys=None
        )
        for each in names(count)
    )
    return configs.DescribeConfigsRequest(resources=resources)


def described_directories(count: int) -> Message:
    topic = log_dirs.DescribableLogDirTopic(topic=READ, partitions=tuple(range(count)))
    return log_dirs.DescribeLogDirsRequest(topics=(topic,))


def altered_directories(count: int) -> Message:
    topic = log_dirs.AlterReplicaLogDirTopic(name=READ, partitions=tuple(range(count)))
    return log_dirs.AlterReplicaLogDirsRequest(
        dirs=(log_dirs.AlterReplicaLogDir(path="/nowhere", topics=(topic,)),)
    )


def producers(count: int) -> Message:
    topic = describe_producers.TopicRequest(name="n", partition_indexes=tuple(range(count)))
    return describe_producers.DescribeProducersRequest(topics=(topic,))


def described_topics(count: int) -> Message:
    wanted = tuple(cluster.TopicRequest(name=each) for each in names(count))
    return cluster.DescribeTopicPartitionsRequest(topics=wanted)


def fetched(count: int) -> Message:
    partitions = tuple(
        fetch.FetchPartition(partition=each, fetch_offset=0, partition_max_bytes=1)
        for each in range(count)
    )
    topic = fetch.FetchTopic(topic="n", partitions=partitions)
    return fetch.FetchRequest(max_wait_ms=0, min_bytes=0, topics=(topic,))


def produced(count: int, transactional_id: str | None = None) -> Message:
    partitions = tuple(
        produce.PartitionProduceData(index=each, records=b"") for each in range(count)
    )
    topic = produce.TopicProduceData(name="n", partition_data=partitions)
    return produce.ProduceRequest(
        transactional_id=transactional_id, acks=1, timeout_ms=1000, topic_data=(topic,)
    )


def produced_in_a_transaction(count: int) -> Message:
    return produced(count, "t")


@pytest.mark.parametrize(
    ("request_", "items", "version"),
    [
        (metadata_of, 5000, 9),
        (coordinators, 5000, 4),
        (described_groups, 3000, 5),
        (deleted_groups, 3000, 2),
        (listed_offsets, 5000, 7),
        (epoch_ends, 5000, 4),
        (committed, 5000, 8),
        (fetched_offsets, 5000, 8),
        (deleted_offsets, 5000, 0),
        (deleted_records, 5000, 2),
        (described_configs, 5000, 4),
        (described_directories, 5000, 4),
        (altered_directories, 5000, 2),
        (producers, 5000, 0),
        (described_topics, 5000, 0),
        (fetched, 5000, 11),
        (produced, 5000, 9),
    ],
    ids=lambda each: getattr(each, "__name__", str(each)),
)
def test_the_work_grows_linearly(
    world: tuple[PortCluster, World], request_: Callable[[int], Message], items: int, version: int
) -> None:
    node, _ = world
    few, many = request_(items), request_(4 * items)
    ratios = []
    for _ in range(TRIES):
        ratios.append(cpu_s(node, many, version) / max(MIN_S, cpu_s(node, few, version)))
        if ratios[-1] < QUADRATIC:
            return
    raise AssertionError(f"4 times the items take {min(ratios):.0f} times as long")


def cpu_s(node: PortCluster, request: Message, version: int) -> float:
    """Return the CPU time without garbage collections, which grow with the heap of the whole test
    run."""
    raw = node.connect(BROKER_PORT)
    gc.disable()
    try:
        begun = time.process_time()
        node.ask(raw, request, version)
        return time.process_time() - begun
    finally:
        gc.enable()
        raw.link.abort()


SLICED = [
    (metadata_of, 9),
    (coordinators, 4),
    (described_groups, 5),
    (deleted_groups, 2),
    (listed_offsets, 7),
    (epoch_ends, 4),
    (committed, 8),
    (fetched_offsets, 8),
    (deleted_offsets, 0),
    (deleted_records, 2),
    (described_configs, 4),
    (altered_directories, 2),
    (described_directories, 4),
    (producers, 0),
    (described_topics, 0),
    (fetched, 11),
    (produced, 9),
]


@pytest.mark.parametrize(
    ("request_", "version"), SLICED, ids=lambda each: getattr(each, "__name__", "")
)
def test_a_long_request_is_worked_on_in_steps(
    world: tuple[PortCluster, World], request_: Callable[[int], Message], version: int
) -> None:
    """Its handler returns steps, between which the server serves other connections."""
    node, _ = world
    (broker,) = node.cluster.brokers
    assert broker.process is not None and broker.process.broker is not None
    (server,) = broker.process.broker.client_ports
    request = request_(4000)
    route = server.routes[request.API_KEY]
    returned: list[Any] = []
    handle: Any = route.handle

    def watched(context: Any, body: Any) -> Any:
        returned.append(handle(context, body))
        return returned[-1]

    route.handle = watched
    try:
        node.ask(node.connect(BROKER_PORT), request, version)
    finally:
        route.handle = handle
    assert returned[0] is not None, APIS[request.API_KEY].name


# ----------------------------------------------------------------------------------------- answers


def test_a_commit_in_parts_is_answered_in_order(world: tuple[PortCluster, World]) -> None:
    node, _ = world
    raw = node.connect(BROKER_PORT)
    answer: Any = node.ask(raw, committed(MANY), 8)
    (topic,) = answer.topics
    assert [each.partition_index for each in topic.partitions] == list(range(MANY))
    errors = [each.error_code for each in topic.partitions]
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert errors == [0] * errors.count(0) + [unknown] * (MANY - errors.count(0))
    assert errors.count(0) >= 1

    found: Any = node.ask(raw, fetched_offsets(MANY), 8)
    (topic,) = found.groups[0].topics
    assert [each.partition_index for each in topic.partitions] == list(range(MANY))
    offsets = [each.committed_offset for each in topic.partitions]
    assert offsets == [each if not errors[each] else -1 for each in range(MANY)]

    deleted: Any = node.ask(raw, deleted_offsets(MANY), 0)
    (topic,) = deleted.topics
    assert [each.error_code for each in topic.partitions] == errors
    again: Any = node.ask(raw, fetched_offsets(MANY), 8)
    assert {each.committed_offset for each in again.groups[0].topics[0].partitions} == {-1}


def test_an_error_of_the_whole_commit_is_that_of_each_part(
    world: tuple[PortCluster, World],
) -> None:
    node, _ = world
    request: Any = committed(MANY)
    request = group_offsets.OffsetCommitRequest(
        group_id="none",
        member_id="m",
        generation_id_or_member_epoch=5,
        topics=request.topics,
    )
    answer: Any = node.ask(node.connect(BROKER_PORT), request, 8)
    (topic,) = answer.topics
    assert len(topic.partitions) == MANY
    assert {each.error_code for each in topic.partitions} == {ErrorCode.ILLEGAL_GENERATION}


def test_records_are_deleted_in_parts(world: tuple[PortCluster, World]) -> None:
    node, _ = world
    answer: Any = node.ask(node.connect(BROKER_PORT), deleted_records(MANY), 2)
    (topic,) = answer.topics
    assert [each.partition_index - 100 for each in topic.partitions] == list(range(MANY))


def test_pipelined_requests_append_in_order_although_the_first_takes_steps(
    world: tuple[PortCluster, World],
) -> None:
    """The first request appends to partition 0 in its last step. The second one must append after
    it."""
    node, prepared = world
    unknown = tuple(
        produce.PartitionProduceData(index=1000 + each, records=batch(0))
        for each in range(3 * PARTITIONS_PER_STEP)
    )
    known = produce.PartitionProduceData(index=0, records=batch(1))

    def request(*partitions: produce.PartitionProduceData) -> produce.ProduceRequest:
        data = produce.TopicProduceData(
            name=READ, topic_id=prepared.read_id, partition_data=partitions
        )
        return produce.ProduceRequest(acks=-1, timeout_ms=5000, topic_data=(data,))

    raw = node.connect(BROKER_PORT)
    node.send(raw, request(*unknown, known), 9, 1)
    node.send(raw, request(known), 9, 2)
    node.until(lambda: len(raw.frames) == 2)
    first, second = (produce_answer(frame).responses[0].partition_responses for frame in raw.frames)
    assert [each.index for each in first] == [*(each.index for each in unknown), 0]
    assert (first[-1].error_code, second[0].error_code) == (0, 0)
    assert first[-1].base_offset < second[0].base_offset


def produce_answer(frame: memoryview) -> produce.ProduceResponse:
    from quorate.quorum.protocol import headers
    from quorate.quorum.protocol.codec import decode

    return decode(produce.ProduceResponse, 9, headers.response_body(frame, 1))


def test_a_group_or_resource_that_is_named_twice_is_described_once(
    world: tuple[PortCluster, World],
) -> None:
    """Otherwise the response would grow with the repetitions in the request."""
    node, _ = world
    raw = node.connect(BROKER_PORT)
    groups: Any = node.ask(raw, group_admin.DescribeGroupsRequest(groups=("a", "b", "a")), 5)
    assert [each.group_id for each in groups.groups] == ["a", "b"]
    broker = configs.DescribeConfigsResource(
        resource_type=4, resource_name="2", configuration_keys=None
    )
    found: Any = node.ask(raw, configs.DescribeConfigsRequest(resources=(broker,) * 3), 4)
    assert len(found.results) == 1
    named = metadata.MetadataRequestTopic(name=READ)
    topics_: Any = node.ask(raw, metadata.MetadataRequest(topics=(named,) * 3), 9)
    assert [each.name for each in topics_.topics] == [READ]
