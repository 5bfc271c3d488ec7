"""CreateTopics, DeleteTopics and CreatePartitions."""

from __future__ import annotations

from typing import Any

import pytest

from quorate.config.topic_keys import TOPIC_KEYS
from quorate.quorum.controller.state.result import MAX_RECORDS_PER_USER_OP
from quorate.quorum.controller.state.settings import ControllerSettings
from quorate.quorum.directory_ids import UNASSIGNED
from quorate.quorum.ids import ZERO_UUID, Uuid
from quorate.quorum.metadata.records import ConfigRecord, PartitionRecord, TopicRecord
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from tests.unit.controller.harness import CLUSTER_ID, WITHOUT_ELR, Driver, creatable, uuid


def create(
    driver: Driver, *topics: CreatableTopic, validate_only: bool = False
) -> list[CreatableTopicResult]:
    response = driver.handle(CreateTopicsRequest(topics=topics, validate_only=validate_only))
    return list(response.topics)


def error_of(driver: Driver, topic: CreatableTopic) -> int:
    length = len(driver.log)
    (result,) = create(driver, topic)
    if result.error_code:
        assert result.error_message
        assert len(driver.log) == length
    return result.error_code


def started(*broker_ids: int) -> Driver:
    driver = Driver()
    driver.start(*(broker_ids or (1, 2, 3)))
    return driver


# ------------------------------------------------------------------------------------------- names


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "a/b", "é", "x" * 250])
def test_names_that_are_refused(name: str) -> None:
    assert error_of(started(), creatable(name)) == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_the_longest_name_and_all_legal_characters() -> None:
    driver = started()
    assert error_of(driver, creatable("x" * 249)) == ErrorCode.NONE
    assert error_of(driver, creatable("A-z_0.9")) == ErrorCode.NONE


def test_names_that_would_share_a_metric_collide() -> None:
    driver = started()
    driver.create("a.b_c", (1,))
    assert error_of(driver, creatable("a_b.c")) == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert error_of(driver, creatable("a.b_c")) == ErrorCode.TOPIC_ALREADY_EXISTS
    driver.handle(delete("a.b_c"))
    assert error_of(driver, creatable("a_b.c")) == ErrorCode.NONE


def test_a_name_given_twice_is_refused_once_and_others_are_made() -> None:
    driver = started()
    results = create(driver, creatable("x"), creatable("y"), creatable("x"))
    assert [(result.name, result.error_code) for result in results] == [
        ("y", ErrorCode.NONE),
        ("x", ErrorCode.INVALID_REQUEST),
    ]
    assert driver.image.topic_names() == ["y"]


def test_the_metadata_topic_is_not_for_making() -> None:
    assert error_of(started(), creatable("__cluster_metadata")) == ErrorCode.INVALID_REQUEST


# -------------------------------------------------------------------------------------- the records


def test_one_topic_is_a_topic_then_configs_then_partitions() -> None:
    driver = started()
    length = len(driver.log)
    topic = creatable(
        "t", partitions=2, replication_factor=3, configs={"retention.ms": "5", "segment.ms": "6"}
    )
    (result,) = create(driver, topic)
    kinds = [type(record) for record in driver.log[length:]]
    assert kinds == [TopicRecord, ConfigRecord, ConfigRecord, PartitionRecord, PartitionRecord]
    assert (result.num_partitions, result.replication_factor) == (2, 3)
    assert result.topic_id == driver.image.topic_id("t") != ZERO_UUID
    for partition_id in (0, 1):
        partition = driver.partition("t", partition_id)
        assert partition.isr == partition.replicas
        assert partition.leader == partition.replicas[0]
        assert (partition.leader_epoch, partition.partition_epoch) == (0, 0)


def test_the_answer_shows_every_config_and_where_it_comes_from() -> None:
    settings = ControllerSettings(
        cluster_id=CLUSTER_ID,
        node_id=3000,
        topic_defaults={"min.insync.replicas": 2},
        features=WITHOUT_ELR,
    )
    driver = Driver(settings)
    driver.start(1)
    for node, name, value in (
        ("", "log.roll.ms", "77"),
        ("", "segment.bytes", "7777777"),  # no key of a node
        ("", "log.retention.bytes", "8"),
        ("3000", "log.retention.bytes", "9"),
        ("", "log.index.interval.bytes", "soon"),  # ignored, as by brokers
    ):
        driver.append([ConfigRecord(resource_type=4, resource_name=node, name=name, value=value)])
    (result,) = create(driver, creatable("t", configs={"retention.ms": "5"}))
    assert result.configs is not None
    shown = {each.name: (each.value, each.config_source) for each in result.configs}
    assert shown["retention.ms"] == ("5", 1)
    assert shown["segment.ms"] == ("77", 3)
    assert shown["segment.bytes"] == ("1073741824", 5)
    assert shown["retention.bytes"] == ("9", 2), "the controller's own dynamic config counts"
    assert shown["index.interval.bytes"] == ("4096", 5)
    assert shown["min.insync.replicas"] == ("2", 4)
    assert shown["cleanup.policy"] == ("delete", 5)
    assert set(shown) == {name for name, key in TOPIC_KEYS.items() if not key.internal}


def test_validate_only_answers_and_writes_nothing() -> None:
    driver = started()
    length = len(driver.log)
    (result,) = create(driver, creatable("t", partitions=5), validate_only=True)
    assert (result.error_code, result.num_partitions) == (ErrorCode.NONE, 5)
    assert len(driver.log) == length


def test_defaults_come_from_the_settings() -> None:
    settings = ControllerSettings(
        cluster_id=CLUSTER_ID, node_id=3000, default_partitions=4, default_replication_factor=2
    )
    driver = Driver(settings)
    driver.start(1, 2, 3)
    (result,) = create(driver, creatable("t", partitions=-1, replication_factor=-1))
    assert (result.num_partitions, result.replication_factor) == (4, 2)


def test_a_replica_gets_its_brokers_only_directory() -> None:
    driver = Driver()
    driver.start(1)
    driver.start(2, log_dirs=(uuid(1), uuid(2)))
    driver.create("t", (1, 2))
    assert driver.partition("t").directories == (driver.broker(1).log_dirs[0], UNASSIGNED)


@pytest.mark.parametrize(
    ("partitions", "factor", "error"),
    [
        (1, 0, ErrorCode.INVALID_REPLICATION_FACTOR),
        (1, -2, ErrorCode.INVALID_REPLICATION_FACTOR),
        (1, 4, ErrorCode.INVALID_REPLICATION_FACTOR),
        (0, 1, ErrorCode.INVALID_PARTITIONS),
        (-2, 1, ErrorCode.INVALID_PARTITIONS),
        (MAX_RECORDS_PER_USER_OP, 1, ErrorCode.POLICY_VIOLATION),
        (2**31 - 1, 1, ErrorCode.POLICY_VIOLATION),
        (MAX_RECORDS_PER_USER_OP - 1, 1, ErrorCode.NONE),
    ],
)
def test_partitions_and_replication_factor(partitions: int, factor: int, error: ErrorCode) -> None:
    topic = creatable("t", partitions=partitions, replication_factor=factor)
    assert error_of(started(), topic) == error


def test_too_many_records_fail_the_whole_request() -> None:
    driver = started()
    length = len(driver.log)
    results = create(driver, creatable("a"), creatable("b", partitions=9_998), creatable("c"))
    assert {result.error_code for result in results} == {ErrorCode.POLICY_VIOLATION}
    assert len(driver.log) == length


def test_no_unfenced_broker_means_no_topic() -> None:
    driver = Driver()
    driver.register(1)
    assert error_of(driver, creatable("t")) == ErrorCode.INVALID_REPLICATION_FACTOR


@pytest.mark.parametrize(
    "configs",
    [
        {"no.such.config": "1"},
        {"retention.ms": "soon"},
        {"min.insync.replicas": "0"},
        {"cleanup.policy": "burn"},
        {"retention.ms": None},
    ],
)
def test_configs_that_are_refused(configs: dict[str, Any]) -> None:
    assert error_of(started(), creatable("t", configs=configs)) == ErrorCode.INVALID_CONFIG


# ------------------------------------------------------------------------------- manual assignments


@pytest.mark.parametrize(
    ("assignments", "error"),
    [
        ([(1, 2), (2, 3)], ErrorCode.NONE),
        ([()], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([(1, 1)], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([(1, 9)], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([(1, 2), (3,)], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([(4,)], ErrorCode.INVALID_REPLICA_ASSIGNMENT),  # fenced
    ],
)
def test_manual_assignments(assignments: list[tuple[int, ...]], error: ErrorCode) -> None:
    driver = started()
    driver.register(4)
    topic = creatable("t", partitions=-1, replication_factor=-1, assignments=assignments)
    assert error_of(driver, topic) == error


def test_a_fenced_replica_is_assigned_but_neither_leads_nor_joins_the_isr() -> None:
    driver = started()
    driver.register(4)
    driver.create("t", (4, 1, 2))
    partition = driver.partition("t")
    assert (partition.replicas, partition.isr, partition.leader) == ((4, 1, 2), (1, 2), 1)


@pytest.mark.parametrize("ids", [(0, 0), (0, 2), (1,), (-1, 0)])
def test_partition_ids_are_consecutive_from_0(ids: tuple[int, ...]) -> None:
    topic = CreatableTopic(
        name="t",
        num_partitions=-1,
        replication_factor=-1,
        assignments=tuple(
            CreatableReplicaAssignment(partition_index=index, broker_ids=(1,)) for index in ids
        ),
        configs=(CreatableTopicConfig(name="retention.ms", value="1"),),
    )
    assert error_of(started(), topic) == ErrorCode.INVALID_REPLICA_ASSIGNMENT


@pytest.mark.parametrize(("partitions", "factor"), [(1, -1), (-1, 1)])
def test_manual_assignments_leave_the_counts_open(partitions: int, factor: int) -> None:
    topic = creatable("t", partitions=partitions, replication_factor=factor, assignments=[(1,)])
    assert error_of(started(), topic) == ErrorCode.INVALID_REQUEST


# ----------------------------------------------------------------------------------------- deleting


def delete(name: str | None = None, topic_id: Uuid = ZERO_UUID) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(
        topics=(DeleteTopicState(name=name, topic_id=topic_id),), timeout_ms=0
    )


def deleted(driver: Driver, request: DeleteTopicsRequest) -> list[DeletableTopicResult]:
    return list(driver.handle(request).responses)


def test_delete_by_name_by_id_and_the_old_way() -> None:
    driver = started()
    for name in "abc":
        driver.create(name, (1,))
    topic_id = driver.image.topic_id("b")
    assert deleted(driver, delete("a"))[0].error_code == ErrorCode.NONE
    (result,) = deleted(driver, delete(topic_id=topic_id))
    assert (result.error_code, result.name, result.topic_id) == (0, "b", topic_id)
    old = DeleteTopicsRequest(topic_names=("c",), timeout_ms=0)
    assert deleted(driver, old)[0].error_code == ErrorCode.NONE
    assert driver.image.topic_names() == []


def test_a_deleted_topic_leaves_nothing_for_a_fence_to_find() -> None:
    driver = started()
    driver.create("t", (1, 2))
    driver.handle(delete("t"))
    driver.heartbeat(1, want_fence=True)
    assert driver.broker(1).fenced


def test_what_cannot_be_deleted() -> None:
    driver = started()
    driver.create("t", (1,))
    topic_id = driver.image.topic_id("t")
    for request, error in (
        (delete("nope"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (delete(topic_id=uuid(1)), ErrorCode.UNKNOWN_TOPIC_ID),
        (delete("t", topic_id), ErrorCode.INVALID_REQUEST),
        (delete(), ErrorCode.INVALID_REQUEST),
    ):
        (result,) = deleted(driver, request)
        assert result.error_code == error and result.error_message
    both = DeleteTopicsRequest(
        topics=(DeleteTopicState(name="t"), DeleteTopicState(topic_id=topic_id)), timeout_ms=0
    )
    twice = DeleteTopicsRequest(topics=(DeleteTopicState(name="t"),) * 2, timeout_ms=0)
    for request in (both, twice):
        (result,) = deleted(driver, request)
        assert result.error_code == ErrorCode.INVALID_REQUEST
    assert driver.image.topic_names() == ["t"]


def test_nothing_is_deleted_where_that_is_disabled() -> None:
    driver = Driver(ControllerSettings(cluster_id=CLUSTER_ID, node_id=3000, topic_deletion=False))
    driver.start(1)
    driver.create("t", (1,))
    (result,) = deleted(driver, delete("t"))
    assert result.error_code == ErrorCode.TOPIC_DELETION_DISABLED
    assert driver.image.topic_names() == ["t"]


# ------------------------------------------------------------------------------------------ growing


def grow(
    driver: Driver,
    name: str,
    count: int,
    assignments: list[tuple[int, ...]] | None = None,
    *,
    validate_only: bool = False,
) -> int:
    manual = assignments and tuple(
        CreatePartitionsAssignment(broker_ids=brokers) for brokers in assignments
    )
    topic = CreatePartitionsTopic(name=name, count=count, assignments=manual or None)
    request = CreatePartitionsRequest(topics=(topic,), timeout_ms=0, validate_only=validate_only)
    result = driver.handle(request).results[0]
    assert bool(result.error_message) == bool(result.error_code)
    return int(result.error_code)


def test_new_partitions_have_the_topics_replication_factor_and_the_next_ids() -> None:
    driver = started()
    driver.create("t", (1, 2))
    assert grow(driver, "t", 4) == ErrorCode.NONE
    assert driver.image.topics[driver.image.topic_id("t")].partition_ids() == [0, 1, 2, 3]
    assert all(len(driver.partition("t", index).replicas) == 2 for index in range(4))


def test_new_partitions_by_hand() -> None:
    driver = started()
    driver.create("t", (1, 2))
    assert grow(driver, "t", 3, [(3, 1), (2, 3)]) == ErrorCode.NONE
    assert [driver.partition("t", index).replicas for index in (1, 2)] == [(3, 1), (2, 3)]


@pytest.mark.parametrize(
    ("name", "count", "assignments", "error"),
    [
        ("nope", 2, None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("t", 2, None, ErrorCode.INVALID_PARTITIONS),
        ("t", 1, None, ErrorCode.INVALID_PARTITIONS),
        ("t", -1, None, ErrorCode.INVALID_PARTITIONS),
        ("t", 2**31 - 1, None, ErrorCode.POLICY_VIOLATION),
        ("t", 4, [(1, 2)], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("t", 3, [(1,)], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("t", 3, [(4, 5)], ErrorCode.INVALID_REPLICA_ASSIGNMENT),  # both fenced
    ],
)
def test_growth_that_is_refused(
    name: str, count: int, assignments: list[tuple[int, ...]] | None, error: ErrorCode
) -> None:
    driver = started()
    driver.register(4)
    driver.register(5)
    driver.create("t", (1, 2), (2, 1))
    length = len(driver.log)
    assert grow(driver, name, count, assignments) == error
    assert len(driver.log) == length


def test_growth_can_be_validated_only() -> None:
    driver = started()
    driver.create("t", (1,))
    length = len(driver.log)
    assert grow(driver, "t", 2, validate_only=True) == ErrorCode.NONE
    assert len(driver.log) == length
