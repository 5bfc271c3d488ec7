"""Strings at and beyond their bounds.

Each of these requests once stopped a broker or the active controller. The string was valid in the
version that it arrived in, and too long for the version that it was written in.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from quorate.quorum.protocol import headers
from quorate.quorum.protocol.apis import APIS
from quorate.quorum.protocol.codec import encode
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas import client_quotas, configs, group_membership, topics
from quorate.quorum.protocol.schemas.find_coordinator import FindCoordinatorRequest
from quorate.quorum.protocol.schemas.group_admin import ListGroupsRequest
from quorate.quorum.protocol.schemas.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from quorate.quorum.protocol.schemas.metadata import MetadataRequest
from quorate.quorum.protocol.wire import Message
from quorate.quorum.seams import Address
from tests.ports.node import BROKER_PORT, CONTROLLERS_PORT, PortCluster, Raw, running

LONGEST = "x" * 32_767
MARK = "MARK"
TOPIC, BROKER = 2, 4
PORTS = pytest.mark.parametrize("port", [BROKER_PORT, CONTROLLERS_PORT], ids=["broker", "direct"])


@pytest.fixture(scope="module")
def node() -> Iterator[PortCluster]:
    with running() as started:
        started.prepared()
        yield started


def still_serves(node: PortCluster, port: Address = BROKER_PORT) -> None:
    """Assert that both nodes run and answer the next request."""
    node.run(0.5)
    raw = node.connect(port)
    request: Message = MetadataRequest(topics=())
    if port != BROKER_PORT:
        request = configs.AlterConfigsRequest(resources=(), validate_only=True)
    node.ask(raw, request, 1)
    raw.link.abort()


def enlarged(request: Message, version: int, size: int) -> bytes:
    """Encode a flexible request with a string of `size` bytes in place of MARK."""
    mark = bytes([len(MARK) + 1]) + MARK.encode()
    body = encode(request, version)
    assert mark in body
    length, value = bytearray(), size + 1
    while value > 0x7F:
        length.append(value & 0x7F | 0x80)
        value >>= 7
    length.append(value)
    return body.replace(mark, bytes(length) + b"m" * size)


def send(node: PortCluster, raw: Raw, api_key: int, version: int, body: bytes) -> None:
    header_version = APIS[api_key].request_header_version(version)
    raw.link.send(headers.request_header(api_key, version, 7, "test", header_version), body)
    node.until(lambda: raw.frames or raw.closed)


def commit(group_id: str) -> OffsetCommitRequest:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    topic = OffsetCommitRequestTopic(name="written", partitions=(partition,))
    return OffsetCommitRequest(group_id=group_id, member_id="", topics=(topic,))


def join(protocol_type: str, group_id: str = "g") -> group_membership.JoinGroupRequest:
    protocol = group_membership.JoinGroupRequestProtocol(name="range", metadata=b"")
    return group_membership.JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id="",
        protocol_type=protocol_type,
        protocols=(protocol,),
    )


BEYOND = [
    pytest.param(commit(MARK), 8, id="OffsetCommit"),
    pytest.param(join(MARK), 9, id="JoinGroup"),
    pytest.param(
        client_quotas.DescribeClientQuotasRequest(
            components=(client_quotas.ComponentData(entity_type=MARK, match_type=1, match=None),),
            strict=False,
        ),
        1,
        id="DescribeClientQuotas",
    ),
    pytest.param(FindCoordinatorRequest(coordinator_keys=(MARK,)), 4, id="FindCoordinator"),
]


@pytest.mark.parametrize("size", [32_768, 40_000, 65_536])
@pytest.mark.parametrize(("request_", "version"), BEYOND)
def test_a_string_beyond_the_bound_closes_the_connection(
    node: PortCluster, request_: Message, version: int, size: int
) -> None:
    raw = node.connect(BROKER_PORT)
    send(node, raw, request_.API_KEY, version, enlarged(request_, version, size))
    assert raw.closed
    assert not raw.frames
    still_serves(node)


def test_a_long_client_id_closes_the_connection(node: PortCluster) -> None:
    """JoinGroup v4 makes a member id of the client id. No response could hold that member id."""
    raw = node.connect(BROKER_PORT)
    head = headers.request_header(11, 4, 7, LONGEST, 1)
    raw.link.send(head, encode(join("consumer"), 4))
    node.until(lambda: raw.frames or raw.closed)
    assert raw.closed
    answer: Any = node.ask(node.connect(BROKER_PORT), ListGroupsRequest(), 2)
    assert answer.error_code == 0
    still_serves(node)


def test_a_long_protocol_type_is_kept_by_no_group(node: PortCluster) -> None:
    raw = node.connect(BROKER_PORT)
    send(node, raw, 11, 9, enlarged(join(MARK, "long"), 9, 2000))
    assert raw.closed
    answer: Any = node.ask(node.connect(BROKER_PORT), ListGroupsRequest(), 2)
    assert "long" not in [each.group_id for each in answer.groups]


def test_the_longest_group_id_is_committed_to_and_listed(node: PortCluster) -> None:
    raw = node.connect(BROKER_PORT)
    answer: Any = node.ask(raw, commit(LONGEST), 8)
    assert answer.topics[0].partitions[0].error_code == 0
    answer = node.ask(raw, ListGroupsRequest(), 2)
    assert LONGEST in [each.group_id for each in answer.groups]
    still_serves(node)


def described(kind: int, name: str) -> configs.DescribeConfigsRequest:
    resource = configs.DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=None
    )
    return configs.DescribeConfigsRequest(resources=(resource,))


@pytest.mark.parametrize(
    ("request_", "version"),
    [
        pytest.param(described(TOPIC, LONGEST), 1, id="DescribeConfigs-topic"),
        pytest.param(described(BROKER, LONGEST), 1, id="DescribeConfigs-broker"),
        pytest.param(
            client_quotas.DescribeClientQuotasRequest(
                components=(
                    client_quotas.ComponentData(entity_type=LONGEST, match_type=1, match=None),
                ),
                strict=False,
            ),
            0,
            id="DescribeClientQuotas",
        ),
    ],
)
def test_a_long_string_is_refused_in_a_short_text(
    node: PortCluster, request_: Message, version: int
) -> None:
    answer: Any = node.ask(node.connect(BROKER_PORT), request_, version)
    failed = answer.results[0] if hasattr(answer, "results") else answer
    assert failed.error_code != 0
    assert 0 < len(failed.error_message) <= 1000
    still_serves(node)


def created(name: str, config: str, value: str) -> topics.CreateTopicsRequest:
    one = topics.CreatableTopicConfig(name=config, value=value)
    topic = topics.CreatableTopic(
        name=name, num_partitions=1, replication_factor=1, assignments=(), configs=(one,)
    )
    return topics.CreateTopicsRequest(topics=(topic,))


def altered(kind: int, name: str, config: str, value: str) -> Message:
    one = configs.IncrementalAlterableConfig(name=config, config_operation=0, value=value)
    resource = configs.IncrementalAlterConfigsResource(
        resource_type=kind, resource_name=name, configs=(one,)
    )
    return configs.IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)


def replaced(kind: int, name: str, config: str, value: str) -> Message:
    one = configs.AlterableConfig(name=config, value=value)
    resource = configs.AlterConfigsResource(resource_type=kind, resource_name=name, configs=(one,))
    return configs.AlterConfigsRequest(resources=(resource,), validate_only=False)


@PORTS
@pytest.mark.parametrize(
    ("request_", "version"),
    [
        pytest.param(created(LONGEST, "retention.ms", "1"), 2, id="CreateTopics-name"),
        pytest.param(created("t", LONGEST, "1"), 2, id="CreateTopics-config"),
        pytest.param(created("t", "retention.ms", LONGEST), 2, id="CreateTopics-value"),
        pytest.param(altered(TOPIC, LONGEST, "a", "1"), 0, id="Incremental-resource"),
        pytest.param(altered(TOPIC, "written", LONGEST, "1"), 0, id="Incremental-name"),
        pytest.param(altered(TOPIC, "written", "retention.ms", LONGEST), 0, id="Incremental-value"),
        pytest.param(altered(BROKER, "9" * 32_767, "a", "1"), 0, id="Incremental-digits"),
        pytest.param(
            altered(BROKER, "", "max.connections.per.ip.overrides", "1.2.3.4:" + "9" * 5000),
            0,
            id="Incremental-overrides",
        ),
        pytest.param(
            altered(BROKER, "", "max.connections.per.ip.overrides", "1.2.3.4:\u00b2"),
            0,
            id="Incremental-superscript",
        ),
        pytest.param(replaced(TOPIC, LONGEST, "a", "1"), 1, id="AlterConfigs-resource"),
        pytest.param(replaced(TOPIC, "written", LONGEST, "1"), 1, id="AlterConfigs-name"),
        pytest.param(replaced(TOPIC, "written", "retention.ms", LONGEST), 1, id="AlterConfigs"),
    ],
)
def test_the_controller_answers_the_longest_strings(
    node: PortCluster, port: Address, request_: Message, version: int
) -> None:
    answer: Any = node.ask(node.connect(port), request_, version)
    (result,) = answer.topics if hasattr(answer, "topics") else answer.responses
    assert result.error_code not in (ErrorCode.NONE, ErrorCode.UNKNOWN_SERVER_ERROR)
    assert len(result.error_message) <= 1000
    still_serves(node, port)
