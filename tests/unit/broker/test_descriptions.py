"""The descriptions of topics and configs that admin clients receive, with Kafka's particular
fields.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

from quorate.broker.kafka.cluster.describe_cluster import DescribeClusterHandler
from quorate.broker.kafka.cluster.describe_topic_partitions import DescribeTopicPartitionsHandler
from quorate.config.loader import load
from quorate.config.node_config import NodeConfig
from quorate.quorum.ids import EpochOffset, Uuid
from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE, MetadataImage
from quorate.quorum.metadata.records import ConfigRecord, PartitionRecord, TopicRecord
from quorate.quorum.metadata.replay import replay
from quorate.quorum.node.controller.describe_configs import DescribeConfigsHandler
from quorate.quorum.protocol.schemas.cluster import (
    DescribeClusterRequest,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from quorate.quorum.protocol.schemas.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResult,
)
from quorate.quorum.rpc.kafka.server import RequestContext

TOPIC = Uuid(b"T" * 16)
ORDERS, _ = replay(
    MetadataImage(),
    [
        TopicRecord(name="orders", topic_id=TOPIC),
        PartitionRecord(
            partition_id=0,
            topic_id=TOPIC,
            replicas=(1,),
            isr=(1,),
            leader=1,
            leader_epoch=0,
            partition_epoch=0,
        ),
    ],
    EpochOffset(1, 2),
    1000,
)


@dataclass
class Asked:
    """A double of a request's context, which keeps the answer."""

    answer: Any = None

    def respond(self, response: object) -> None:
        self.answer = response

    def respond_steps(self, response: object) -> IncrementalWork[None]:
        self.respond(response)
        yield from ()

    @property
    def context(self) -> RequestContext:
        return cast(RequestContext, self)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> NodeConfig:
    file = tmp_path_factory.mktemp("node") / "server.properties"
    file.write_text(
        "process.roles=broker\nnode.id=1\nlisteners=PLAINTEXT://127.0.0.1:9092\n"
        "controller.listener.names=CONTROLLER\ncontroller.quorum.voters=9@127.0.0.1:9093\n"
        f"log.dirs={Path(file.parent) / 'data'}\n"
    )
    return load(str(file), environment={})


def configs(
    node: NodeConfig,
    resource_type: int,
    name: str,
    keys: tuple[str, ...] | None,
    image: MetadataImage = ORDERS,
    *,
    include_synonyms: bool = False,
) -> DescribeConfigsResult:
    handler = DescribeConfigsHandler(node=node, image=lambda: image)
    resource = DescribeConfigsResource(
        resource_type=resource_type, resource_name=name, configuration_keys=keys
    )
    asked = Asked()
    request = DescribeConfigsRequest(resources=(resource,), include_synonyms=include_synonyms)
    handler.handle(asked.context, request)
    (result,) = cast("tuple[DescribeConfigsResult, ...]", asked.answer.results)
    return result


def test_no_config_of_a_topic_is_read_only(node: NodeConfig) -> None:
    """kafka-python refuses to alter read-only configs."""
    result = configs(node, TOPIC_RESOURCE, "orders", None)
    assert result.configs
    assert [each.name for each in result.configs if each.read_only] == []


def test_some_configs_of_a_broker_are_read_only(node: NodeConfig) -> None:
    result = configs(node, BROKER_RESOURCE, "1", ("node.id", "min.insync.replicas"))
    read_only = {each.name: each.read_only for each in result.configs}
    assert read_only == {"node.id": True, "min.insync.replicas": False}


def test_a_dynamic_key_is_described_while_it_is_set(node: NodeConfig) -> None:
    rate = "leader.replication.throttled.rate"
    image = ORDERS

    def described(name: str) -> list[tuple[str | None, int]]:
        handler = DescribeConfigsHandler(node=node, image=lambda: image)
        resource = DescribeConfigsResource(
            resource_type=BROKER_RESOURCE, resource_name=name, configuration_keys=(rate,)
        )
        asked = Asked()
        handler.handle(asked.context, DescribeConfigsRequest(resources=(resource,)))
        return [(each.value, each.config_source) for each in asked.answer.results[0].configs]

    assert described("1") == described("") == []
    for name, value in (("", "7"), ("1", "8")):
        record = ConfigRecord(
            resource_type=BROKER_RESOURCE, resource_name=name, name=rate, value=value
        )
        image, _ = replay(image, [record], EpochOffset(1, 3), 1000)
    assert described("1") == [("8", 2)], "that of the broker comes before that of all"
    assert described("") == [("7", 3)]


@pytest.mark.parametrize("keys", [None, ()])
def test_without_names_all_configs_are_told(node: NodeConfig, keys: tuple[str, ...] | None) -> None:
    """Kafka treats an empty list like null, although its protocol documentation says otherwise."""
    assert len(configs(node, TOPIC_RESOURCE, "orders", keys).configs) > 20


def test_named_configs_are_told_alone(node: NodeConfig) -> None:
    result = configs(node, TOPIC_RESOURCE, "orders", ("retention.ms", "no.such.key"))
    assert [each.name for each in result.configs] == ["retention.ms"]


CLUSTER = DescribeClusterHandler(cluster_id="c", listener="PLAINTEXT", image=lambda: ORDERS)
TOPICS = DescribeTopicPartitionsHandler(listener="PLAINTEXT", image=lambda: ORDERS)


@pytest.mark.parametrize(
    ("name", "text", "described"),
    [
        ("retention.ms", " 007 ", "7"),
        ("retention.ms", "+5", "5"),
        ("preallocate", "TRUE", "true"),
        ("cleanup.policy", "delete, compact", "delete,compact"),
        ("min.cleanable.dirty.ratio", ".25", "0.25"),
        ("min.cleanable.dirty.ratio", "1e-10", "1.0E-10"),
        ("min.cleanable.dirty.ratio", "1.0f", "1.0"),
    ],
)
def test_the_typed_value_of_a_config_is_described(
    node: NodeConfig, name: str, text: str, described: str
) -> None:
    """A tool that compares a config with its own text of the value would otherwise see a change
    where there is none."""
    record = ConfigRecord(
        resource_type=TOPIC_RESOURCE, resource_name="orders", name=name, value=text
    )
    image, _ = replay(ORDERS, [record], EpochOffset(1, 3), 1001)
    result = configs(node, TOPIC_RESOURCE, "orders", (name,), image, include_synonyms=True)
    (config,) = result.configs
    assert config.value == config.synonyms[0].value == described


def test_the_typed_value_of_a_dynamic_broker_config_is_described(node: NodeConfig) -> None:
    """The synonyms repeat the text that is set, as in Kafka."""
    name = "log.flush.interval.messages"
    record = ConfigRecord(
        resource_type=BROKER_RESOURCE, resource_name="1", name=name, value=" 0500 "
    )
    image, _ = replay(ORDERS, [record], EpochOffset(1, 3), 1001)
    for kind, resource, key in (
        (BROKER_RESOURCE, "1", name),
        (TOPIC_RESOURCE, "orders", "flush.messages"),
    ):
        result = configs(node, kind, resource, (key,), image, include_synonyms=True)
        (config,) = result.configs
        assert config.value == "500"
        assert config.synonyms[0].value == " 0500 "


@pytest.mark.parametrize(("include", "operations"), [(True, 0x1FA0), (False, -(1 << 31))])
def test_what_may_be_done_with_the_cluster(include: bool, operations: int) -> None:
    asked = Asked()
    request = DescribeClusterRequest(
        include_cluster_authorized_operations=include,
        endpoint_type=1,
        include_fenced_brokers=False,
    )
    CLUSTER.handle(asked.context, request)
    assert asked.answer.cluster_authorized_operations == operations


def test_what_may_be_done_with_a_topic() -> None:
    """DescribeTopicPartitions always returns the authorized operations; Metadata returns them on
    request (KIP-430)."""
    asked = Asked()
    request = DescribeTopicPartitionsRequest(
        topics=(TopicRequest(name="orders"),), response_partition_limit=10, cursor=None
    )
    TOPICS.handle(asked.context, request)
    (topic,) = asked.answer.topics
    assert topic.topic_authorized_operations == 0x0DF8


def test_a_partition_without_a_leader_is_no_error() -> None:
    """Broker 1, which leads the partition, is not registered. Metadata has an error for that."""
    asked = Asked()
    request = DescribeTopicPartitionsRequest(
        topics=(TopicRequest(name="orders"),), response_partition_limit=10, cursor=None
    )
    TOPICS.handle(asked.context, request)
    (partition,) = asked.answer.topics[0].partitions
    assert (partition.error_code, partition.leader_id, partition.isr_nodes) == (0, -1, (1,))
