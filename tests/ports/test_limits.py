"""The limits of a node's ports, set by its properties, as clients see them, on virtual time."""

from __future__ import annotations

from typing import Any

import pytest

from quorate.quorum.protocol.schemas.configs import (
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from quorate.quorum.protocol.schemas.metadata import MetadataRequest
from quorate.quorum.seams import Address
from tests.ports.node import BROKER_PORT, CONTROLLERS_PORT, PortCluster, Raw, running
from tests.ports.requests import BROKER, READ, World, fetched, produced

PORTS = pytest.mark.parametrize(
    "port", [BROKER_PORT, CONTROLLERS_PORT], ids=["broker", "controller"]
)


def open_now(node: PortCluster, *connections: Raw) -> list[bool]:
    node.run(0.1)
    return [not each.closed for each in connections]


@PORTS
def test_idle_connections_are_closed(port: Address) -> None:
    with running(connections_max_idle_ms="5000") as node:
        raw = node.connect(port)
        node.run(4.5)
        assert open_now(node, raw) == [True]
        node.run(1.0)
        assert open_now(node, raw) == [False]


@PORTS
def test_too_many_connections(port: Address) -> None:
    with running(max_connections="2") as node:
        connections = []
        for _ in range(3):
            connections.append(node.connect(port))
            node.run(0.1)
        assert open_now(node, *connections) == [False, True, True]


@PORTS
def test_requests_that_are_too_large(port: Address) -> None:
    with running(socket_request_max_bytes="100") as node:
        small, large = node.connect(port), node.connect(port)
        large.link.send(bytes(101))
        small.link.send(bytes.fromhex("00120000000000070002") + b"me")
        node.until(lambda: small.frames)
        assert open_now(node, small, large) == [True, False]


def test_limits_are_changed_while_the_node_runs() -> None:
    with running() as node:
        first = node.connect(BROKER_PORT)
        config = IncrementalAlterableConfig(name="max.connections", config_operation=0, value="1")
        resource = IncrementalAlterConfigsResource(
            resource_type=BROKER, resource_name="", configs=(config,)
        )
        request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
        answer: Any = node.ask(first, request, 1)
        assert answer.responses[0].error_code == 0
        node.run(1.0)
        second = node.connect(BROKER_PORT)
        assert open_now(node, first, second) == [False, True]


def test_pipelined_requests_wait_for_their_turn_and_all_are_answered() -> None:
    """One connection has long polls, and there is no room for the requests behind them."""
    with running(queued_max_requests="1") as node:
        world: World = node.prepared()
        raw = node.connect(BROKER_PORT)
        (broker,) = node.cluster.brokers
        process = broker.process
        assert process is not None and process.broker is not None
        connections = process.broker.connections
        most = 0
        for number in range(50):
            node.send(raw, fetched(world, 12), 12, number)
            node.send(raw, MetadataRequest(topics=()), 9, 100 + number)
            node.send(raw, produced(READ, world.read_id, number), 9, 200 + number)
        while len(raw.frames) < 150:
            node.run(0.001)
            most = max(most, connections._queued)
        expected = [each + number for number in range(50) for each in (0, 100, 200)]
        assert [int.from_bytes(frame[:4], "big") for frame in raw.frames] == expected
        assert most == 1
        assert connections._queued == 0
