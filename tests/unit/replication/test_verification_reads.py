"""Requests of verification tools (replica id -2), which compare replicas: each replica answers,
leader or not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import pytest

from quorate.broker.kafka.records.list_offsets import CONSUMER, EARLIEST, LATEST, ListOffsetsHandler
from quorate.broker.replication.fetches.reading import DEBUGGING_CONSUMER
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from quorate.quorum.rpc.kafka.server import RequestContext
from tests.unit.replication.cluster import ReplicaCluster, led_by
from tests.unit.replication.test_lookups import Asked

MakeCluster = Callable[..., ReplicaCluster]


@pytest.fixture
def cluster(make_cluster: MakeCluster) -> ReplicaCluster:
    return make_cluster()


def test_a_follower_is_read_to_its_log_end(cluster: ReplicaCluster) -> None:
    topic = cluster.create("t", [led_by(1, 2, 3)])
    cluster.run(50)
    cluster.produce(1, topic)
    cluster.run(1500)
    answers = [cluster.fetch(each, topic, replica_id=DEBUGGING_CONSUMER) for each in (1, 2, 3)]
    (leader,), (second,), (third,) = answers
    assert bytes(leader.records) == bytes(second.records) == bytes(third.records) != b""
    assert [each.high_watermark for (each,) in answers] == [1, 1, 1]
    (consumed,) = cluster.fetch(2, topic)
    assert consumed.error == ErrorCode.NOT_LEADER_OR_FOLLOWER, "consumers read at the leader only"


def test_an_epoch_that_is_not_the_replicas_is_refused(cluster: ReplicaCluster) -> None:
    topic = cluster.create("t", [led_by(1, 2, 3)])
    cluster.run(50)
    (fetched,) = cluster.fetch(2, topic, replica_id=DEBUGGING_CONSUMER, leader_epoch=9)
    assert fetched.error == ErrorCode.UNKNOWN_LEADER_EPOCH


def listed(
    cluster: ReplicaCluster, broker: int, replica_id: int, timestamp: int = LATEST, epoch: int = -1
) -> tuple[ErrorCode, int]:
    """Return what the broker answers to ListOffsets for partition 0 of topic t."""
    wanted = ListOffsetsPartition(
        partition_index=0, timestamp=timestamp, current_leader_epoch=epoch
    )
    request = ListOffsetsRequest(
        replica_id=replica_id, topics=(ListOffsetsTopic(name="t", partitions=(wanted,)),)
    )
    asked = Asked()
    handler = ListOffsetsHandler(cluster.nodes[broker].replicas)
    rest = handler.list_offsets(cast(RequestContext, asked), request)
    if rest is not None:
        asked.run(rest)
    (found,) = asked.found
    return found


def test_a_follower_lists_its_own_log_end_for_a_tool_only(cluster: ReplicaCluster) -> None:
    """As in Kafka, where ListOffsets with replica id -2 is no request for the leader only."""
    topic = cluster.create("t", [led_by(1, 2, 3)])
    cluster.run(50)
    cluster.produce(1, topic)
    cluster.run(1500)
    cluster.produce(1, topic)  # the followers have not fetched it yet
    assert listed(cluster, 1, DEBUGGING_CONSUMER) == (ErrorCode.NONE, 2)
    assert listed(cluster, 2, DEBUGGING_CONSUMER) == (ErrorCode.NONE, 1)
    assert listed(cluster, 3, DEBUGGING_CONSUMER, EARLIEST) == (ErrorCode.NONE, 0)
    assert listed(cluster, 1, CONSUMER) == (ErrorCode.NONE, 1), "the high watermark"
    refused = ErrorCode.NOT_LEADER_OR_FOLLOWER, -1
    assert listed(cluster, 2, CONSUMER) == refused
    assert listed(cluster, 2, 3) == refused, "a replica asks its leader"
    later = listed(cluster, 2, DEBUGGING_CONSUMER, epoch=9)
    assert later == (ErrorCode.UNKNOWN_LEADER_EPOCH, -1)
