"""Scripts of single inputs that once stopped a node, or could. The ablations use them."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any
from unittest import mock

from quorate.broker.kafka.cluster.describe_cluster import DescribeClusterHandler
from quorate.quorum.controller.controller import Controller
from quorate.quorum.log.batches.batch import HEADER_BYTES, build_batch
from quorate.quorum.log.batches.record import Record
from quorate.quorum.protocol.schemas.cluster import DescribeClusterRequest
from quorate.quorum.protocol.schemas.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from quorate.quorum.protocol.schemas.reassignments import ListPartitionReassignmentsRequest
from quorate.quorum.protocol.wire import Message
from quorate.quorum.raft.messages import VoteRequest
from quorate.quorum.seams import Address
from tests.sim.adversary.batches import sealed
from tests.sim.adversary.client import HostileClient
from tests.sim.adversary.peer import FaultyNode
from tests.sim.adversary.requests import frame
from tests.sim.adversary.values import OWN_ID, Aims, Draw
from tests.sim.run import PLACES, Simulation
from tests.sim.scripts.staging import DATA, healed, leader, settled, writes_some
from tests.sim.world.clock import WALL_EPOCH_MS
from tests.sim.world.cluster import CLIENT_PORT, Machine

A_BUG = "no rule and no handler expects this"
WAIT_S = 1.0
LAST_EPOCH = (1 << 31) - 1


def _raises(*_: Any, **__: Any) -> None:
    raise LookupError(A_BUG)


def sane() -> Draw:
    return Draw(Random(0), 0.0)


async def ask(stage: Simulation, broker: Machine, request: Message, version: int) -> None:
    client = HostileClient(stage.cluster, ())
    stage.adversaries.append(client)
    data = frame(request, version, sane())
    sent = client.send(sane(), data, Address(broker.name, CLIENT_PORT))
    await client.host.spawn(sent)
    await asyncio.sleep(WAIT_S)


async def a_handler_raises(stage: Simulation) -> None:
    """Send a request whose handler has a bug. The request fails, and the broker continues to
    serve."""
    with mock.patch.object(DescribeClusterHandler, "handle", _raises):
        await settled(stage)
    producer = stage.producer("p1", PLACES, pace_s=0.02)
    await writes_some(stage, producer, PLACES)
    await ask(
        stage, leader(stage), DescribeClusterRequest(include_cluster_authorized_operations=False), 1
    )
    await healed(stage)


async def a_rule_raises(stage: Simulation) -> None:
    """Let a broker forward a request for which a rule of the active controller has a bug."""
    await settled(stage)
    handle = Controller.handle

    def raising(self: Controller, request: Any, **facts: Any) -> Any:
        if isinstance(request, ListPartitionReassignmentsRequest):
            raise LookupError(A_BUG)
        return handle(self, request, **facts)

    with mock.patch.object(Controller, "handle", raising):
        request = ListPartitionReassignmentsRequest(timeout_ms=500, topics=None)
        await ask(stage, leader(stage), request, 0)
    await healed(stage)


async def poison_is_sent(stage: Simulation) -> None:
    """Send a batch with a right CRC whose payload holds no records. A consumer reads everything."""
    await settled(stage)
    stage.consumer("reader").start([DATA], 0.02)
    record = Record(0, WALL_EPOCH_MS, None, b"evil:0")
    batch = build_batch([record], leader_epoch=-1)
    batch[HEADER_BYTES:] = b"\x01" * 40
    data = PartitionProduceData(index=DATA[1], records=sealed(bytes(batch)))
    topic = TopicProduceData(name=DATA[0], partition_data=(data,))
    request = ProduceRequest(acks=-1, timeout_ms=500, topic_data=(topic,))
    await ask(stage, leader(stage), request, 9)
    await healed(stage)


async def vote(stage: Simulation, targets: list[Machine], epoch: int) -> None:
    """Let the faulty node ask each target for a vote in that epoch."""
    node = FaultyNode(stage.cluster, ())
    stage.adversaries.append(node)
    stage.invariants.doubts_expected = True
    for target in targets:
        key = [target.key.id, target.key.directory_id]
        candidate = [OWN_ID, b"\x01" * 16]
        row = [stage.cluster.cluster_id, key, candidate, epoch, [0, 0], False]
        await node.host.spawn(node.tell(sane(), target, VoteRequest, row))
    await asyncio.sleep(WAIT_S)


async def vote_in_the_last_epoch(stage: Simulation) -> None:
    """Ask for a vote in the last epoch, after which no epoch is left for an election."""
    await settled(stage)
    await vote(stage, stage.cluster.controllers, LAST_EPOCH)
    await healed(stage)


async def vote_asked_of_a_spare(stage: Simulation) -> None:
    """Ask a controller that is no voter for a vote, so that it enters a later epoch than its
    leader."""
    await settled(stage)
    spare = stage.cluster.controllers[-1]
    assert spare.id not in stage.cluster.shape.voter_ids
    await vote(stage, [spare], Aims(stage.cluster).raft_epoch + 5)
    await healed(stage)
    await stage.caught_up()
