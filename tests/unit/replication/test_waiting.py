"""Requests that wait at a partition: those that timed out do not accumulate."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Sequence

import pytest

from quorate.broker.replication.appends.delete_records import DeletionRequest, DeletionResult
from quorate.broker.replication.partitions import hosted_partition as hosted_module
from quorate.broker.replication.partitions import traffic
from quorate.broker.replication.partitions.traffic import Traffic
from quorate.quorum.log.batches.batch import build_batch
from quorate.quorum.log.batches.record import Record
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.hot import ProducePartition, ProducePartitionResult
from tests.unit.replication.cluster import ReplicaCluster, led_by

MakeCluster = Callable[..., ReplicaCluster]


class Client:
    """The owner of a request, which must not be referenced after the answer."""

    def __init__(self) -> None:
        self.errors: list[int] = []

    def done(self, results: Sequence[ProducePartitionResult]) -> None:
        self.errors += [each.error for each in results]


def test_produce_requests_that_timed_out_are_removed(
    make_cluster: MakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a follower is down, the high watermark does not move until the follower leaves the ISR.
    Once, a client with short timeouts left a request behind with each batch."""
    monkeypatch.setattr(hosted_module, "MIN_PRUNED", 8)
    cluster = make_cluster()
    topic = cluster.create("t", [led_by(1, 2, 3)])
    cluster.run(50)
    cluster.network.isolate("b2")
    cluster.network.isolate("b3")
    hosted = cluster.hosted(1, topic)
    hosted._acks_pruned_at = 8
    clients = [Client() for _ in range(60)]
    for number, client in enumerate(clients):
        batch = memoryview(build_batch([Record(0, number, None, b"v")], leader_epoch=0))
        wanted = ProducePartition("", topic, 0, batch)
        cluster.nodes[1].replicas.append([wanted], -1, 5, client.done)
        cluster.run(10)
    assert {error for each in clients for error in each.errors} == {ErrorCode.REQUEST_TIMED_OUT}
    assert len(hosted._acks) < 16
    last = weakref.ref(clients[-1])
    del clients, client
    gc.collect()
    assert last() is None, "the waiting request keeps nothing of its client"


def test_deletions_that_timed_out_are_removed(
    make_cluster: MakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = make_cluster()
    topic = cluster.create("t", [led_by(1, 2, 3)])
    cluster.run(50)
    cluster.produce(1, topic)
    cluster.run(50)
    cluster.network.isolate("b2")
    hosted = cluster.hosted(1, topic)
    monkeypatch.setattr(hosted_module, "MIN_PRUNED", 8)
    hosted._deletions_pruned_at = 8
    answers: list[DeletionResult] = []
    for _ in range(60):
        cluster.nodes[1].replicas.delete_records([DeletionRequest("t", 0, 1)], 5, answers.extend)
        cluster.run(10)
    assert {each.error for each in answers} == {ErrorCode.REQUEST_TIMED_OUT}
    assert len(hosted._deletions) < 16


def test_counters_of_topics_that_have_gone_are_added_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traffic, "MIN_PRUNED", 4)
    here = ["kept"]
    counters = Traffic(lambda: here)
    counters._pruned_at = 4
    counters.of("kept").messages_in = 1
    for number in range(100):
        counters.of(f"gone {number}").messages_in = 1
    assert len(counters._topics) <= 5
    assert counters.of("kept").messages_in == 1
    assert counters.total().messages_in == 101, "totals never go back"
