"""The effects of properties that a running node shows to its clients, on virtual time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from quorate.broker.metrics.scrape import broker_metrics
from quorate.config.setting import Setting
from quorate.quorum.metadata.internal_topics import OFFSETS_TOPIC
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas import cluster, configs, fetch, metadata
from quorate.quorum.protocol.schemas.configs import DescribeConfigsRequest
from quorate.quorum.protocol.schemas.group_membership import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
)
from tests.ports.node import PortCluster, running
from tests.ports.requests import World, batch, create, find, produced

TOPIC = 2


def described(node: PortCluster, *names: str, create_missing: bool = False) -> Any:
    """Return the answer to a Metadata request."""
    request = metadata.MetadataRequest(
        topics=tuple(metadata.MetadataRequestTopic(name=name) for name in names),
        allow_auto_topic_creation=create_missing,
    )
    raw = node.connect(node.broker_port)
    answer = node.ask(raw, request, 12)
    raw.link.abort()
    return answer


def answered_after_s(node: PortCluster, request: Any, version: int) -> float:
    """Send a request whose answer waits for the controller. Return the virtual seconds."""
    raw = node.connect(node.broker_port)
    begin_s = node.loop.time()
    node.send(raw, request, version, 7)
    node.until(lambda: raw.frames)
    return node.loop.time() - begin_s


@pytest.mark.parametrize("allowed", [True, False], ids=["allowed", "forbidden"])
def test_topics_are_created_if_allowed(allowed: bool) -> None:
    with running(auto_create_topics_enable=str(allowed).lower()) as node:
        described(node, "new", create_missing=True)
        node.run(1.0)
        assert ("new" in node.cluster.newest_image().topic_ids) == allowed


def test_a_broker_tells_its_rack() -> None:
    with running(broker_rack="r7") as node:
        assert [each.rack for each in described(node).brokers] == ["r7"]


@pytest.mark.parametrize("bound", [0, 2])
def test_so_many_partitions_have_metrics_of_their_own(bound: int) -> None:
    with running(metrics_per_partition=str(bound)) as node:
        node.ask(node.connect(node.broker_port), create("many", partitions=5), 7)
        node.run(1.0)
        process = node.cluster.brokers[0].process
        assert process is not None and process.broker is not None
        families = {each.name: each.samples for each in broker_metrics(process.broker)}
        (left_out,) = families["quorate_metrics_left_out_partitions"]
        assert left_out.value == 5 - bound
        assert len(families["kafka_cluster_partition_replicascount"]) == bound


@pytest.mark.parametrize("enabled", [True, False], ids=["enabled", "disabled"])
def test_leaderships_are_given_up_if_it_is_enabled(enabled: bool) -> None:
    with running(brokers=2, controlled_shutdown_enable=str(enabled).lower()) as node:
        machine = node.cluster.brokers[0]
        assert machine.process is not None and machine.process.broker is not None
        lifecycle = machine.process.broker.lifecycle
        assert lifecycle is not None
        asked: list[bool] = []
        begin = lifecycle.begin_shutdown

        def begin_shutdown() -> None:
            asked.append(True)
            begin()

        lifecycle.begin_shutdown = begin_shutdown  # type: ignore[method-assign]
        node.cluster.stop(machine)
        node.until(lambda: machine.process is None)
        assert asked == [True] * enabled


@pytest.mark.parametrize("limit", [1024, 57671680])
def test_a_fetch_returns_no_more_bytes(limit: int) -> None:
    count = 20
    assert len(batch()) * count > 1024
    with running(fetch_max_bytes=str(limit)) as node:
        raw = node.connect(node.broker_port)
        node.ask(raw, create("t"), 7)
        node.run(1.0)
        topic_id = described(node, "t").topics[0].topic_id
        for _ in range(count):
            answer: Any = node.ask(raw, produced("t", topic_id), 12)
            assert answer.responses[0].partition_responses[0].error_code == 0
        request = fetch.FetchRequest(
            max_wait_ms=0,
            min_bytes=1,
            topics=(
                fetch.FetchTopic(
                    topic_id=topic_id,
                    partitions=(
                        fetch.FetchPartition(
                            partition=0, fetch_offset=0, partition_max_bytes=1 << 20
                        ),
                    ),
                ),
            ),
        )
        found: Any = node.ask(raw, request, 13)
        records = found.responses[0].partitions[0].records
        assert len(records) // len(batch()) == min(count, limit // len(batch()))


def test_the_offsets_topic() -> None:
    with running(
        brokers=2,
        offsets_topic_num_partitions="3",
        offsets_topic_replication_factor="2",
        offsets_topic_segment_bytes="2000000",
    ) as node:
        raw = node.connect(node.broker_port)
        node.ask(raw, find(World(0), 3), 3)
        node.run(1.0)
        topic = described(node, OFFSETS_TOPIC).topics[0]
        assert [len(each.replica_nodes) for each in topic.partitions] == [2, 2, 2]
        wanted = configs.DescribeConfigsResource(
            resource_type=TOPIC,
            resource_name=OFFSETS_TOPIC,
            configuration_keys=("segment.bytes",),
        )
        answer: Any = node.ask(raw, DescribeConfigsRequest(resources=(wanted,)), 4)
        assert answer.results[0].configs[0].value == "2000000"


@pytest.mark.parametrize("timeout_ms", [1000, 4000])
def test_a_forwarded_request_waits_for_the_controller(timeout_ms: int) -> None:
    with running(controller_socket_timeout_ms=str(timeout_ms)) as node:
        node.cluster.kill(node.cluster.controllers[0])
        node.run(0.5)
        waited_s = answered_after_s(node, create("t"), 7)
        assert timeout_ms <= waited_s * 1000 < timeout_ms + 500


@pytest.mark.parametrize("linger_ms", [0, 300])
def test_a_change_waits_for_others(linger_ms: int) -> None:
    with running(controller_quorum_append_linger_ms=str(linger_ms)) as node:
        waited_s = answered_after_s(node, create("t"), 7)
        assert linger_ms <= waited_s * 1000 < linger_ms + 200


@pytest.mark.parametrize("timeout_ms", [1000, 4000])
def test_the_creation_of_a_missing_topic_waits_for_the_controller(timeout_ms: int) -> None:
    with running(request_timeout_ms=str(timeout_ms), auto_create_topics_enable="true") as node:
        node.cluster.kill(node.cluster.controllers[0])
        node.run(0.5)
        request = metadata.MetadataRequest(
            topics=(metadata.MetadataRequestTopic(name="new"),), allow_auto_topic_creation=True
        )
        waited_s = answered_after_s(node, request, 12)
        assert timeout_ms <= waited_s * 1000 < timeout_ms + 500


def test_a_topic_has_the_numbers_of_the_node_that_completes_its_request() -> None:
    """The broker creates a missing topic with the numbers in its own file, as in Kafka. The active
    controller has others here, for a topic that a client creates without numbers."""
    settings = {"num_partitions": "3", "default_replication_factor": "2"}
    with running(1, 2, auto_create_topics_enable="true", **settings) as node:
        (controller,) = node.cluster.controllers
        node.cluster.kill(controller)
        others = {
            "num.partitions": Setting(5, None, "file"),
            "default.replication.factor": Setting(1, None, "file"),
        }
        config = controller.config
        controller.config = replace(config, settings={**config.settings, **others})
        node.cluster.start(controller)
        node.run(5.0)
        described(node, "missing", create_missing=True)
        raw = node.connect(node.broker_port)
        made: Any = node.ask(raw, create("made", partitions=-1, replicas=-1), 7)
        assert made.topics[0].error_code == 0
        node.run(1.0)
        found = {
            each.name: (len(each.partitions), len(each.partitions[0].replica_nodes))
            for each in described(node, "missing", "made").topics
        }
        assert found == {"missing": (3, 2), "made": (5, 1)}


def test_partitions_of_one_description_are_bounded() -> None:
    with running(max_request_partition_size_limit="2") as node:
        raw = node.connect(node.broker_port)
        node.ask(raw, create("t", partitions=5), 7)
        node.run(1.0)
        request = cluster.DescribeTopicPartitionsRequest(
            topics=(cluster.TopicRequest(name="t"),), response_partition_limit=2000
        )
        answer: Any = node.ask(raw, request, 0)
        assert [each.partition_index for each in answer.topics[0].partitions] == [0, 1]
        assert answer.next_cursor.partition_index == 2


def test_session_timeouts_of_groups_are_bounded() -> None:
    with running(group_min_session_timeout_ms="1000", group_max_session_timeout_ms="2000") as node:
        node.prepared()
        errors = {}
        for timeout_ms in (999, 1000, 2000, 2001):
            request = JoinGroupRequest(
                group_id="g",
                session_timeout_ms=timeout_ms,
                rebalance_timeout_ms=timeout_ms,
                member_id="",
                protocol_type="consumer",
                protocols=(JoinGroupRequestProtocol(name="range", metadata=b""),),
            )
            answer: Any = node.ask(node.connect(node.broker_port), request, 9)
            errors[timeout_ms] = answer.error_code
        assert errors == {
            999: ErrorCode.INVALID_SESSION_TIMEOUT,
            1000: ErrorCode.MEMBER_ID_REQUIRED,
            2000: ErrorCode.MEMBER_ID_REQUIRED,
            2001: ErrorCode.INVALID_SESSION_TIMEOUT,
        }
