"""Reads of verification tools (replica id -2), which compare replicas: each replica answers, leader
or not.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from quorate.broker.replication.reading import DEBUGGING_CONSUMER
from quorate.quorum.protocol.errors import ErrorCode
from tests.unit.replication.cluster import ReplicaCluster, led_by

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
