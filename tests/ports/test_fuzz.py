"""A node answers damaged frames or closes their connection, and still serves other clients."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from quorate.quorum.protocol import headers
from quorate.quorum.protocol.apis import APIS, ApiKey
from quorate.quorum.protocol.codec import encode
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.produce import ProduceResponse
from quorate.quorum.protocol.schemas.unregister_broker import UnregisterBrokerRequest
from quorate.quorum.protocol.wire import Message
from quorate.quorum.seams import Address
from tests.ports.fuzz import frames, obeyed, valid
from tests.ports.node import BROKER_ID, BROKER_PORT, CONTROLLERS_PORT, PortCluster, Raw, running
from tests.ports.obeyed import is_obeyed
from tests.ports.requests import BUILDERS, READ, World, produced

FRAMES = 1500
BATCH = 25
OBEYED = 5
MAX_OPEN = 20


@pytest.mark.parametrize("port", [BROKER_PORT, CONTROLLERS_PORT], ids=["broker", "controller"])
def test_no_frame_harms_a_node(
    prepared: tuple[PortCluster, World], port: Address, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    node, world = prepared
    bystander = node.connect(BROKER_PORT)
    open_: list[Raw] = []
    closed = 0
    source = frames(world, seed=20)
    for _ in range(FRAMES // BATCH):
        while len(open_) < MAX_OPEN:
            open_.append(node.connect(port))
        for index in range(BATCH):
            open_[index % MAX_OPEN].link.send(next(source))
        node.run(0.2)
        closed += sum(each.closed for each in open_)
        open_ = [each for each in open_ if not each.closed]
        produce(node, bystander, world)
    for each in open_:
        each.link.abort()
    assert closed > FRAMES // 10, "most of these cannot be answered"
    node.run(60.0)  # all delayed requests have expired
    assert connection_counts(node) == (1, 0), "the bystander's"
    assert queued(node) == (0, 0)
    bystander.link.abort()


@pytest.mark.parametrize("port", [BROKER_PORT, CONTROLLERS_PORT], ids=["broker", "controller"])
def test_no_frame_that_must_be_obeyed_stops_a_node(
    port: Address, caplog: pytest.LogCaptureFixture
) -> None:
    """Each such frame gets a cluster of its own, because it ends the other test."""
    caplog.set_level(logging.CRITICAL)
    source = obeyed(World(BROKER_ID), seed=21)
    for _ in range(OBEYED):
        with running() as node:
            world = node.prepared()
            frame = next(source)
            node.connect(port).link.send(frame)
            node.run(2.0)
            key = ApiKey.METADATA
            answer: Any = node.ask(node.connect(BROKER_PORT), BUILDERS[key](world, 12), 12)
            assert is_obeyed(frame) and answer.brokers is not None


def produce(node: PortCluster, bystander: Raw, world: World) -> None:
    answer = node.ask(bystander, produced(READ, world.read_id), 9)
    assert isinstance(answer, ProduceResponse)
    assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE


def connections(node: PortCluster) -> tuple[Any, Any]:
    (broker,), (controller,) = node.cluster.brokers, node.cluster.controllers
    assert broker.process is not None and broker.process.broker is not None
    assert controller.process is not None and controller.process.controller is not None
    return (
        broker.process.broker.connections,
        controller.process.controller.port._server.quotas,
    )


def connection_counts(node: PortCluster) -> tuple[int, ...]:
    return tuple(map(len, connections(node)))


def queued(node: PortCluster) -> tuple[int, ...]:
    return tuple(each._queued for each in connections(node))


def test_all_requests_are_fuzzed() -> None:
    """Only a request that ends the test is left out, and no API as a whole."""
    world = World(2)
    assert not [each for each in valid(world) if is_obeyed(each) and not deletes_read(each)]
    source = frames(world, seed=1)
    keys = {int.from_bytes(next(source)[:2], "big") for _ in range(4 * FRAMES)}
    assert keys >= set(APIS)
    for key in (ApiKey.DESCRIBE_QUORUM, ApiKey.UNREGISTER_BROKER):
        assert not is_obeyed(framed(BUILDERS[key](world, 0)))
    assert is_obeyed(framed(UnregisterBrokerRequest(broker_id=world.broker_id)))


def framed(request: Message) -> bytes:
    api = next(each for each in APIS.values() if each.request is type(request))
    head = headers.request_header(api.key, 0, 7, "fuzz", api.request_header_version(0))
    return head + encode(request, 0)


def deletes_read(frame: bytes) -> bool:
    return int.from_bytes(frame[:2], "big") == ApiKey.DELETE_TOPICS and READ.encode() in frame


def test_the_node_still_does_what_it_did(prepared: tuple[PortCluster, World]) -> None:
    node, world = prepared
    raw = node.connect(BROKER_PORT)
    fetched: Any = node.ask(raw, BUILDERS[ApiKey.FETCH](world, 12), 12)
    assert fetched.responses[0].partitions[0].high_watermark > FRAMES // BATCH
