"""Answers that once differed from Apache Kafka 4.1.1 (found by tests/kafka/test_answers)."""

from __future__ import annotations

from typing import Any

import pytest

from quorate.quorum.protocol.apis import ApiKey
from quorate.quorum.protocol.authorized_operations import CLUSTER_OPERATIONS, TOPIC_OPERATIONS
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.cluster import (
    DescribeClusterRequest,
    DescribeQuorumRequest,
    DescribeTopicPartitionsRequest,
    QuorumPartition,
    QuorumTopic,
    TopicRequest,
)
from quorate.quorum.protocol.schemas.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from quorate.quorum.protocol.schemas.group_membership import SyncGroupRequest
from quorate.quorum.protocol.schemas.init_producer_id import InitProducerIdRequest
from quorate.quorum.protocol.schemas.metadata import MetadataRequest, MetadataRequestTopic
from tests.ports.node import BROKER_PORT, CONTROLLERS_PORT, PortCluster
from tests.ports.requests import BUILDERS, CONTROLLERS, TOPIC, World, listed


@pytest.fixture
def ask(prepared: tuple[PortCluster, World]) -> Any:
    """Build a request of `key` and send it to the broker."""
    node, world = prepared

    def asked(key: int, version: int, build: Any = None) -> Any:
        request = (build or BUILDERS[key])(world, version)
        return node.ask(node.connect(BROKER_PORT), request, version)

    return asked


@pytest.mark.parametrize("version", [2, 8, 10])
def test_an_offset_of_a_partition_that_is_not_there_is_not_committed(
    ask: Any, version: int
) -> None:
    (topic,) = ask(ApiKey.OFFSET_COMMIT, version).topics
    assert {each.partition_index: each.error_code for each in topic.partitions} == {
        0: ErrorCode.NONE,
        9: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


def test_offsets_that_are_asked_for_twice_are_not_answered(ask: Any) -> None:
    answer = ask(ApiKey.LIST_OFFSETS, 7, listed((0, -1), (0, -2), (1, -1)))
    errors = [each.error_code for each in answer.topics[0].partitions]
    assert errors == [ErrorCode.INVALID_REQUEST, ErrorCode.NONE]


def test_what_a_version_cannot_ask_for_is_not_answered(ask: Any) -> None:
    """The record with the largest timestamp can be requested since version 7 (KIP-734)."""
    errors = [
        ask(ApiKey.LIST_OFFSETS, version, listed((0, -3))).topics[0].partitions[0].error_code
        for version in (6, 7)
    ]
    assert errors == [ErrorCode.UNSUPPORTED_VERSION, ErrorCode.NONE]


def test_an_offset_out_of_range_says_nothing_of_the_log(ask: Any) -> None:
    told = {each.partition_index: each for each in ask(ApiKey.FETCH, 12).responses[0].partitions}
    assert told[1].error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert (told[1].high_watermark, told[1].log_start_offset) == (-1, -1)


@pytest.mark.parametrize(
    ("version", "error"),
    [(4, ErrorCode.UNKNOWN_MEMBER_ID), (5, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)],
)
def test_a_sync_names_its_protocol_since_version_5(ask: Any, version: int, error: int) -> None:
    request = SyncGroupRequest(group_id="g", generation_id=1, member_id="nobody", assignments=())
    assert ask(ApiKey.SYNC_GROUP, version, lambda world, version: request).error_code == error


@pytest.mark.parametrize("version", [10, 11])
def test_metadata_by_topic_id_is_refused_before_it_is_answered(ask: Any, version: int) -> None:
    """KAFKA-10774. The broker once closed the connection, because these versions have no null
    names."""

    def build(world: World, version: int) -> MetadataRequest:
        return MetadataRequest(topics=(MetadataRequestTopic(topic_id=world.read_id, name=None),))

    (topic,) = ask(ApiKey.METADATA, version, build).topics
    assert (topic.error_code, topic.name) == (ErrorCode.INVALID_REQUEST, "")


@pytest.mark.parametrize("name", ["", "..", "a b", "a" * 250])
def test_a_name_that_no_topic_can_have_is_no_missing_topic(ask: Any, name: str) -> None:
    """A consumer would otherwise ask for it without end."""
    for key, version, request in (
        (ApiKey.METADATA, 9, MetadataRequest(topics=(MetadataRequestTopic(name=name),))),
        (
            ApiKey.DESCRIBE_TOPIC_PARTITIONS,
            0,
            DescribeTopicPartitionsRequest(topics=(TopicRequest(name=name),)),
        ),
    ):
        (topic,) = ask(key, version, lambda world, version, request=request: request).topics
        assert (topic.error_code, topic.name) == (ErrorCode.INVALID_TOPIC_EXCEPTION, name)


def test_a_missing_internal_topic_is_internal(ask: Any) -> None:
    request = MetadataRequest(topics=(MetadataRequestTopic(name="__transaction_state"),))
    (topic,) = ask(ApiKey.METADATA, 9, lambda world, version: request).topics
    assert (topic.error_code, topic.is_internal) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, True)


@pytest.mark.parametrize(("producer_id", "epoch"), [(-1, 0), (7, -1)])
def test_half_of_an_earlier_producer_is_refused(ask: Any, producer_id: int, epoch: int) -> None:
    request = InitProducerIdRequest(
        transactional_id=None,
        transaction_timeout_ms=0,
        producer_id=producer_id,
        producer_epoch=epoch,
    )
    answer = ask(ApiKey.INIT_PRODUCER_ID, 3, lambda world, version: request)
    assert answer.error_code == ErrorCode.INVALID_REQUEST


def test_sasl_is_not_expected_on_this_port(ask: Any) -> None:
    assert ask(ApiKey.SASL_HANDSHAKE, 1).error_code == ErrorCode.ILLEGAL_SASL_STATE


def test_operations_on_a_topic_that_is_not_there_are_told(ask: Any) -> None:
    for answer in (ask(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0), ask(ApiKey.METADATA, 9)):
        operations = {each.name: each.topic_authorized_operations for each in answer.topics}
        assert operations["missing"] == operations["read"] == TOPIC_OPERATIONS


def test_a_topic_that_could_not_be_made_has_no_configs_rather_than_unknown_ones(ask: Any) -> None:
    (first,) = ask(ApiKey.CREATE_TOPICS, 7).topics
    (again,) = ask(ApiKey.CREATE_TOPICS, 7).topics
    assert first.configs
    assert (again.error_code, again.configs) == (ErrorCode.TOPIC_ALREADY_EXISTS, ())


@pytest.mark.parametrize(
    ("version", "error"), [(0, ErrorCode.INVALID_REQUEST), (1, ErrorCode.MISMATCHED_ENDPOINT_TYPE)]
)
def test_controllers_do_not_describe_brokers(
    prepared: tuple[PortCluster, World], version: int, error: int
) -> None:
    node, _ = prepared
    request = DescribeClusterRequest(include_cluster_authorized_operations=False)
    answer: Any = node.ask(node.connect(CONTROLLERS_PORT), request, version)
    assert answer.error_code == error


@pytest.mark.parametrize("port", [BROKER_PORT, CONTROLLERS_PORT])
def test_an_endpoint_type_that_does_not_exist(
    prepared: tuple[PortCluster, World], port: Any
) -> None:
    """Brokers and controllers answered as for the type of the others."""
    node, _ = prepared
    for kind in (0, 3):
        request = DescribeClusterRequest(
            include_cluster_authorized_operations=False, endpoint_type=kind
        )
        answer: Any = node.ask(node.connect(port), request, 1)
        assert answer.error_code == ErrorCode.UNSUPPORTED_ENDPOINT_TYPE


@pytest.mark.parametrize("key", [ApiKey.ADD_RAFT_VOTER, ApiKey.REMOVE_RAFT_VOTER])
def test_voters_of_another_cluster(ask: Any, key: int) -> None:
    assert ask(key, 0).error_code == ErrorCode.INCONSISTENT_CLUSTER_ID


@pytest.mark.parametrize(
    "asked",
    [
        (),
        (("another", 0),),
        (("__cluster_metadata", 1),),
        (("__cluster_metadata", 0), ("another", 0)),
    ],
    ids=str,
)
def test_there_is_one_quorum_to_describe(ask: Any, asked: tuple[tuple[str, int], ...]) -> None:
    request = DescribeQuorumRequest(
        topics=tuple(
            QuorumTopic(topic_name=name, partitions=(QuorumPartition(partition_index=index),))
            for name, index in asked
        )
    )
    answer = ask(ApiKey.DESCRIBE_QUORUM, 2, lambda world, version: request)
    told = [
        (topic.topic_name, each.partition_index, each.error_code)
        for topic in answer.topics
        for each in topic.partitions
    ]
    assert answer.error_code == ErrorCode.NONE
    assert told == [(*each, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) for each in asked]


def test_controllers_describe_themselves(prepared: tuple[PortCluster, World]) -> None:
    node, _ = prepared
    request = DescribeClusterRequest(
        include_cluster_authorized_operations=True, endpoint_type=CONTROLLERS
    )
    answer: Any = node.ask(node.connect(CONTROLLERS_PORT), request, 1)
    assert answer.cluster_authorized_operations == CLUSTER_OPERATIONS
    assert [each.broker_id for each in answer.brokers] == [1]


def test_controllers_describe_configs(prepared: tuple[PortCluster, World]) -> None:
    """kafka-configs --bootstrap-controller sends this request."""
    node, _ = prepared
    request = DescribeConfigsRequest(
        resources=tuple(
            DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
            for kind, name in ((4, "1"), (4, ""), (4, "7"), (TOPIC, "read"))
        )
    )
    answer: Any = node.ask(node.connect(CONTROLLERS_PORT), request, 4)
    errors = [each.error_code for each in answer.results]
    assert errors == [0, 0, ErrorCode.INVALID_REQUEST, 0]
    own = {each.name: each.value for each in answer.results[0].configs}
    assert own["process.roles"] == "controller"
