"""Changes of the ISR, from lagging and returning followers to the answer of the controller."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from quorate.quorum.protocol.errors import ErrorCode
from tests.unit.replication.cluster import ReplicaCluster, led_by
from tests.unit.replication.test_replication import produced

MakeCluster = Callable[..., ReplicaCluster]


@pytest.fixture
def cluster(make_cluster: MakeCluster) -> ReplicaCluster:
    return make_cluster()


def test_lagging_follower_leaves_the_isr_and_returns(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(replica_lag_time_max_ms=2000)
    topic = cluster.create("t", [led_by(1, 2, 3)])
    cluster.run(50)
    produced(cluster, 1, topic)
    cluster.network.isolate("b3")
    answers = cluster.produce(1, topic)
    cluster.run(1500)
    assert not answers
    cluster.run(2500)
    assert cluster.image.topics[topic].partitions[0].isr == (1, 2)
    assert answers[0].error == 0
    cluster.network.heal()
    cluster.run(40_000)
    assert cluster.image.topics[topic].partitions[0].isr == (1, 2, 3)


def test_idle_followers_stay_in_the_isr(make_cluster: MakeCluster) -> None:
    """While nothing happens, the fetches of followers name no partitions. The first append must not
    count that as a lag."""
    cluster = make_cluster(replica_lag_time_max_ms=2000)
    topic = cluster.create("t", [led_by(1, 2, 3)])
    cluster.run(20_000)
    produced(cluster, 1, topic)
    cluster.run(20_000)
    for _ in range(30):
        cluster.produce(1, topic)
        cluster.run(333)
    assert cluster.image.topics[topic].partitions[0].isr == (1, 2, 3)
    assert cluster.image.topics[topic].partitions[0].partition_epoch == 0


def test_idle_followers_are_not_late_when_something_is_appended(make_cluster: MakeCluster) -> None:
    """Their fetches without partitions have shown that they had everything."""
    cluster = make_cluster(replica_lag_time_max_ms=2000)
    topic = cluster.create("t", [led_by(1, 2, 3)])
    cluster.run(50)
    cluster.produce(1, topic)
    cluster.run(10_000)
    cluster.produce(1, topic)
    hosted = cluster.hosted(1, topic)
    hosted.partition.check_followers(hosted._clock.now_ms())
    assert hosted.partition.leadership is not None
    assert hosted.partition.leadership.proposal is None


def test_dead_idle_follower_is_found_out_by_the_first_append(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(replica_lag_time_max_ms=2000)
    topic = cluster.create("t", [led_by(1, 2, 3)])
    cluster.run(1000)
    cluster.network.isolate("b3")
    cluster.run(10_000)
    assert cluster.image.topics[topic].partitions[0].isr == (1, 2, 3), "it has everything"
    answers = cluster.produce(1, topic)
    cluster.run(1500)
    assert cluster.image.topics[topic].partitions[0].isr == (1, 2)
    assert answers[0].error == 0


def test_unknown_outcome_of_an_isr_change_keeps_the_joining_replica_counted(
    make_cluster: MakeCluster,
) -> None:
    cluster = make_cluster()
    topic = cluster.create("t", [led_by(1, 2, 3, isr=(1, 2))])
    cluster.refuse_changes = ErrorCode.UNKNOWN_SERVER_ERROR
    cluster.run(200)
    cluster.network.isolate("b3")
    answers = cluster.produce(1, topic)
    cluster.run(500)
    assert not answers


def test_ineligible_replica_is_proposed_again_when_its_broker_is_back(
    cluster: ReplicaCluster,
) -> None:
    topic = cluster.create("t", [led_by(1, 2, 3, isr=(1, 2))])
    cluster.refuse_changes = ErrorCode.INELIGIBLE_REPLICA
    cluster.run(200)
    assert cluster.image.topics[topic].partitions[0].isr == (1, 2)
    incomplete = cluster.hosted(1, topic).incomplete
    assert cluster.hosted(1, topic) in incomplete
    cluster.refuse_changes = None
    cluster.run(2000)
    assert cluster.image.topics[topic].partitions[0].isr == (1, 2, 3)
    assert not incomplete, "what is complete is not looked at again"
