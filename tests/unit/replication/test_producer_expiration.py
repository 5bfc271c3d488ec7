"""producer.id.expiration.ms and the interval of its check."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tests.unit.replication.cluster import ReplicaCluster, led_by

MakeCluster = Callable[..., ReplicaCluster]


def test_producers_expire_after_their_time(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(brokers=1, producer_expiration_check_interval_ms=1000)
    cluster.partition_settings = replace(cluster.partition_settings, producer_id_expiration_ms=2500)
    topic = cluster.create("t", [led_by(1)])
    cluster.run(20)
    wall_ms = cluster.nodes[1].replicas._clock.wall_ms()
    producer = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
    sent = cluster.produce(1, topic, producer=producer, timestamp_ms=wall_ms)
    assert [each.error for each in sent] == [0]
    states = cluster.hosted(1, topic).partition.producers.loaded
    assert states is not None
    cluster.run(2400)
    assert list(states.producers) == [7], "no check came after 2500 ms"
    cluster.run(700)
    assert list(states.producers) == []
