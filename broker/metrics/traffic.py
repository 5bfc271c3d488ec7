"""The metrics of the traffic of topics, and of the fetchers of followers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from prometheus_client.metrics_core import Metric

from quorate.broker.metrics import replica_table
from quorate.broker.replication.partitions.traffic import TopicTraffic, Traffic
from quorate.broker.replication.replica_manager import ReplicaManager
from quorate.quorum.watch.declaration import Counter

OF_TOPIC: tuple[tuple[Counter, Callable[[TopicTraffic], int]], ...] = (
    (replica_table.MESSAGES_IN, lambda each: each.messages_in),
    (replica_table.BYTES_IN, lambda each: each.bytes_in),
    (replica_table.BYTES_OUT, lambda each: each.bytes_out),
    (replica_table.PRODUCE_REQUESTS, lambda each: each.produce_requests),
    (replica_table.FETCH_REQUESTS, lambda each: each.fetch_requests),
    (replica_table.FAILED_PRODUCES, lambda each: each.failed_produce_requests),
    (replica_table.FAILED_FETCHES, lambda each: each.failed_fetch_requests),
    (replica_table.REPLICATION_BYTES_IN, lambda each: each.replication_bytes_in),
    (replica_table.REPLICATION_BYTES_OUT, lambda each: each.replication_bytes_out),
    (replica_table.REASSIGNMENT_BYTES_IN, lambda each: each.reassignment_bytes_in),
    (replica_table.KEYLESS_RECORDS, lambda each: each.keyless_records),
    (replica_table.REJECTED_BYTES, lambda each: each.rejected_bytes),
    (replica_table.DAMAGED_BATCHES, lambda each: each.damaged_batches),
)


def of_traffic(traffic: Traffic, hosted: Collection[str], bound: int) -> Iterator[Metric]:
    """Yield the traffic of the first `bound` of the `hosted` topics by name, and the sum for the
    broker. The counters of topics that are not hosted are merged into the sum
    (`Traffic.by_topic`)."""
    by_topic = sorted(traffic.by_topic(hosted).items())[:bound]
    total = traffic.total()
    for counter, count in OF_TOPIC:
        samples = [((topic,), count(each)) for topic, each in by_topic]
        yield counter.each([(("",), count(total)), *samples])


def of_fetchers(replicas: ReplicaManager, bound: int) -> Iterator[Metric]:
    """Yield the largest lag of all followed partitions, in records, and the lag of the first
    `bound` of them by name."""
    lags = sorted(((each.topic, each.key[1]), lag) for each, lag in replicas.fetchers.lags())
    most = max((lag for _, lag in lags), default=0)
    yield replica_table.MAX_LAG.each([(("Replica",), most)])
    yield replica_table.FETCHER_LAG.each(
        (("ReplicaFetcherThread", topic, str(partition)), lag)
        for (topic, partition), lag in lags[:bound]
    )


def of_throttles(replicas: ReplicaManager) -> Iterator[Metric]:
    """Yield the rates of the replicas that the throttles of replication apply to."""
    yield replica_table.LEADER_THROTTLED_RATE.of(replicas.leader_throttle.byte_rate)
    yield replica_table.FOLLOWER_THROTTLED_RATE.of(replicas.follower_throttle.byte_rate)
