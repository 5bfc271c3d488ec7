"""The estimated memory of requests that wait for the active controller."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import pytest

from quorate.quorum.controller.state.messages import (
    AlterPartitionRequest,
    AssignReplicasToDirsRequest,
    BrokerHeartbeatRequest,
    IsrChange,
)
from quorate.quorum.ids import Uuid
from quorate.quorum.node.controller.request_bytes import (
    LEAST_BYTES,
    client_request_bytes,
    node_request_bytes,
)
from quorate.quorum.protocol.codec import decode, encode
from quorate.quorum.protocol.schemas.topics import DeleteTopicsRequest
from quorate.quorum.rpc.messages import frame_header, packed, sole_message


def held_bytes(build: Callable[[], object]) -> int:
    """Return the memory of what `build` returns."""
    build()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        kept = build()
        after, _ = tracemalloc.get_traced_memory()
        del kept
        return after - before
    finally:
        tracemalloc.stop()


def changed(partition_id: int, replicas: int) -> IsrChange:
    return IsrChange(
        topic_id=Uuid(partition_id.to_bytes(16, "big")),
        partition_id=partition_id,
        leader_epoch=1000,
        partition_epoch=1000,
        isr=tuple((1000 + replica, 100_000 + replica) for replica in range(replicas)),
        leader_recovery_state=0,
        cause="isr-shrink-lag",
    )


@pytest.mark.parametrize("replicas", [1, 3, 20])
def test_changes_of_isrs_are_measured(replicas: int) -> None:
    message = AlterPartitionRequest(
        broker_id=1,
        broker_epoch=2,
        changes=tuple(changed(number, replicas) for number in range(300)),
    )
    frame = frame_header(1) + packed(message, 1)
    if len(frame) > 64 << 10:
        message = AlterPartitionRequest(broker_id=1, broker_epoch=2, changes=message.changes[:100])
        frame = frame_header(1) + packed(message, 1)
    real = held_bytes(lambda: sole_message(frame, AlterPartitionRequest))
    assert real / 3 < node_request_bytes(message) < 3 * real


def test_assignments_are_measured() -> None:
    assignments = tuple((Uuid(bytes(16)), number, Uuid(bytes(16))) for number in range(1000))
    message = AssignReplicasToDirsRequest(broker_id=1, broker_epoch=1, assignments=assignments)
    frame = frame_header(1) + packed(message, 1)
    real = held_bytes(lambda: sole_message(frame, AssignReplicasToDirsRequest))
    assert real / 3 < node_request_bytes(message) < 3 * real


def test_other_requests_of_nodes_count_as_small() -> None:
    heartbeat = BrokerHeartbeatRequest(
        broker_id=1, broker_epoch=1, metadata_offset=1, want_fence=False, want_shut_down=False
    )
    assert node_request_bytes(heartbeat) == LEAST_BYTES


@pytest.mark.parametrize("counted", [True, False])
def test_requests_of_many_short_texts_are_not_underrated(counted: bool) -> None:
    names = tuple(f"{number:03}" for number in range(900))
    body = encode(DeleteTopicsRequest(topic_names=names, timeout_ms=1000), 4)
    real = held_bytes(lambda: decode(DeleteTopicsRequest, 4, body))
    estimate = client_request_bytes(len(body), len(names) if counted else None)
    assert real / 3 < estimate < 8 * real
