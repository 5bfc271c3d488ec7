"""The histograms and gauges of a broker and a controller after some requests, on virtual time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from prometheus_client.metrics_core import Metric

from quorate.broker.metrics.groups import of_groups
from quorate.broker.metrics.scrape import broker_metrics
from quorate.broker.node import BrokerNode
from quorate.quorum.node.controller.controller_node import ControllerNode
from quorate.quorum.protocol.schemas.cluster import DescribeClusterRequest
from quorate.quorum.watch.metrics import NodeMetrics
from tests.ports.node import BROKER_PORT, CONTROLLERS_PORT, PortCluster
from tests.ports.requests import GROUP, READ, World, committed, produced

Samples = dict[tuple[str, ...], float]


def nodes(node: PortCluster) -> tuple[BrokerNode, ControllerNode]:
    (broker,), (controller,) = node.cluster.brokers, node.cluster.controllers
    assert broker.process is not None and broker.process.broker is not None
    assert controller.process is not None and controller.process.controller is not None
    return broker.process.broker, controller.process.controller


def families(node: PortCluster) -> Iterator[Metric]:
    broker, controller = nodes(node)
    yield from broker_metrics(broker)
    yield from controller._metrics()
    for core in (broker.core, controller.core):
        endpoints = core.http_endpoints
        yield from NodeMetrics(core, endpoints.measures, endpoints.life_cycle).collect()


@pytest.fixture(scope="module")
def found(prepared: tuple[PortCluster, World]) -> Samples:
    """Name and label values to value, after 32 appends and two committed offsets."""
    node, world = prepared
    raw = node.connect(BROKER_PORT)
    for number in range(32):
        node.ask(raw, produced(READ, world.read_id, number), 9)
    node.ask(raw, committed(world, 8), 8)
    node.ask(
        node.connect(CONTROLLERS_PORT),
        DescribeClusterRequest(include_cluster_authorized_operations=False, endpoint_type=2),
        1,
    )
    node.run(1.0)
    return {
        (each.name, *each.labels.values()): each.value
        for family in families(node)
        for each in family.samples
    }


def test_requests_by_stage(found: Samples) -> None:
    name = "quorate_request_seconds_count"
    assert found[name, "Produce", "total"] == found[name, "Produce", "local"] >= 32
    assert (name, "Produce", "remote") not in found, "one replica waits for no other"
    assert found["quorate_request_seconds_bucket", "Produce", "total", "+Inf"] >= 32
    old = found["kafka_network_requestmetrics_totaltimems_count", "Produce"]
    assert old == found[name, "Produce", "total"]
    assert found["quorate_controller_request_seconds_count", "DescribeCluster", "total"] > 0


def test_one_of_16_appends_is_timed(found: Samples) -> None:
    assert found["quorate_log_append_seconds_count",] >= 2


@pytest.mark.parametrize(
    "name",
    [
        "quorate_controller_queue_seconds_count",
        "quorate_controller_processing_seconds_count",
        "quorate_metadata_replay_lag_seconds_count",
        "quorate_metadata_acting_lag_seconds_count",
        "quorate_metadata_flush_seconds_count",
    ],
)
def test_these_have_events(found: Samples, name: str) -> None:
    assert [value for key, value in found.items() if key[0] == name and value > 0]


def test_an_election_of_the_quorum_is_counted(found: Samples) -> None:
    assert found["quorate_raft_elections_total", "leader"] >= 1
    assert found["quorate_raft_election_seconds_count",] >= 1


def test_nothing_waits_in_the_purgatory(found: Samples) -> None:
    name = "kafka_server_delayedoperationpurgatory_purgatorysize"
    assert found[name, "Produce"] == found[name, "Fetch"] == found[name, "DeleteRecords"] == 0


def test_the_lag_of_a_group(prepared: tuple[PortCluster, World], found: Samples) -> None:
    at = (GROUP, READ, "0")
    end = found["quorate_partition_high_watermark", READ, "0"]
    offset = found["quorate_consumer_group_committed_offset", *at]
    assert offset == 2
    assert found["quorate_consumer_group_lag_records", *at] == end - offset > 0
    broker, _ = nodes(prepared[0])
    bounded = {
        each.name: each.samples for each in of_groups(broker.groups, broker.replicas.registry, 0)
    }
    assert bounded["quorate_consumer_group_lag_records"] == []
    assert bounded["quorate_metrics_left_out_group_offsets"][0].value > 0
    assert bounded["quorate_groups"][0].value > 0
