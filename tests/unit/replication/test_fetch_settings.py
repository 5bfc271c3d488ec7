"""The keys of a follower's fetches."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from quorate.quorum.log.files.settings import LogSettings
from quorate.quorum.rpc.kafka.client import KafkaClient
from tests.unit.replication.cluster import ReplicaCluster, led_by

MakeCluster = Callable[..., ReplicaCluster]


def asked(
    cluster: ReplicaCluster, monkeypatch: pytest.MonkeyPatch, *, silent: bool = False
) -> list[tuple[float, Any]]:
    """Return the list to which the fetches that reach broker 1 are added, with the time in s. If
    `silent`, the broker does not answer them."""
    requests: list[tuple[float, Any]] = []
    sessions = cluster.nodes[1].replicas.replica_sessions
    fetch = sessions.fetch

    def noted(request: Any, *others: Any) -> None:
        requests.append((cluster.loop.time(), request))
        if not silent:
            fetch(request, *others)

    monkeypatch.setattr(sessions, "fetch", noted)
    return requests


def test_a_follower_asks_for_what_its_settings_say(
    make_cluster: MakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = make_cluster(
        brokers=2,
        replica_fetch_max_bytes=111,
        replica_fetch_response_max_bytes=222,
        replica_fetch_min_bytes=3,
        replica_fetch_wait_max_ms=444,
    )
    requests = asked(cluster, monkeypatch)
    cluster.create("t", [led_by(1, 2)])
    cluster.run(100)
    _, request = requests[0]
    assert request.max_wait_ms == 444
    assert request.min_bytes == 3
    assert request.max_bytes == 222
    assert [each.max_bytes for each in request.partitions] == [111]


@pytest.mark.parametrize("partitions", [1, 3])
def test_a_follower_waits_for_its_minimum_of_bytes(
    make_cluster: MakeCluster, partitions: int
) -> None:
    """The leader sent each record immediately, whatever replica.fetch.min.bytes was."""
    cluster = make_cluster(
        brokers=2, replica_fetch_min_bytes=1000, replica_fetch_wait_max_ms=10_000
    )
    topic = cluster.create("t", [led_by(1, 2)] * partitions)
    cluster.run(50)

    def copied() -> list[int]:
        return [cluster.offsets(topic, each)[2][0] for each in range(partitions)]

    for number in range(3):
        cluster.produce(1, topic, bytes(200), partition_id=number % partitions)
        cluster.run(1000)
    assert copied() == [0] * partitions
    cluster.produce(1, topic, bytes(200))
    cluster.run(50)
    assert sum(copied()) == 4
    cluster.produce(1, topic, bytes(200))
    cluster.run(1000)
    assert sum(copied()) == 4
    cluster.run(10_000)
    assert sum(copied()) == 5, "replica.fetch.wait.max.ms is over"


def test_records_that_a_new_follower_lacks_count_as_bytes(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(
        brokers=2, replica_fetch_min_bytes=1000, replica_fetch_wait_max_ms=10_000
    )
    disk = cluster.kill(2)
    topic = cluster.create("t", [led_by(1, 2, isr=(1,))])
    cluster.run(50)
    for _ in range(5):
        cluster.produce(1, topic, bytes(200))
    cluster.start(2, disk)
    cluster.run(1500)
    assert cluster.offsets(topic)[2][0] == 5


def test_records_that_retention_removes_before_they_are_sent(
    make_cluster: MakeCluster, caplog: pytest.LogCaptureFixture
) -> None:
    """The last answer had no room for them, so the next request does not name their partition."""
    cluster = make_cluster(
        brokers=2, replica_fetch_min_bytes=1000, replica_fetch_response_max_bytes=2000
    )
    disk = cluster.kill(2)
    cluster.log_settings = LogSettings(segment_bytes=1000, retention_bytes=0)
    topic = cluster.create("t", [led_by(1, 2, isr=(1,))] * 3)
    cluster.run(50)
    for number in range(12):
        cluster.produce(1, topic, bytes(900), partition_id=number % 3)
    cluster.start(2, disk)
    leader = cluster.nodes[1].replicas
    sessions = leader.replica_sessions._sessions
    while not any(each._readable and each._respond is None for each in sessions.values()):
        cluster.run(0.05)
    leader._apply_retention()
    cluster.run(3000)
    assert [cluster.offsets(topic, each) for each in range(3)] == [{1: (4, 4), 2: (4, 4)}] * 3
    assert "failed" not in caplog.text


@pytest.mark.parametrize("key", ["replica_fetch_max_bytes", "replica_fetch_response_max_bytes"])
def test_a_size_of_0_lets_one_batch_pass(make_cluster: MakeCluster, key: str) -> None:
    """Both keys may be 0, and the first batch is sent in any case. With
    replica.fetch.response.max.bytes=0, followers got nothing, and fetched again immediately."""
    cluster = make_cluster(brokers=2, **{key: 0})
    topic = cluster.create("t", [led_by(1, 2)])
    cluster.run(50)
    fetches = cluster.fetched_by.total()
    for _ in range(3):
        cluster.produce(1, topic)
    cluster.run(100)
    assert cluster.offsets(topic) == {1: (3, 3), 2: (3, 2)}
    assert cluster.fetched_by.total() - fetches <= 4


@pytest.mark.parametrize("backoff_ms", [500, 2000])
def test_a_failed_fetch_is_repeated_after_the_backoff(
    make_cluster: MakeCluster, monkeypatch: pytest.MonkeyPatch, backoff_ms: int
) -> None:
    cluster = make_cluster(brokers=2, replica_fetch_backoff_ms=backoff_ms)
    attempts: list[float] = []
    connect = KafkaClient.connect

    async def noted(*args: Any) -> Any:
        attempts.append(cluster.loop.time())
        return await connect(*args)

    monkeypatch.setattr(KafkaClient, "connect", noted)
    cluster.kill(1)
    cluster.create("t", [led_by(1, 2)])
    cluster.run(20_000)
    waits_s = [later - earlier for earlier, later in pairwise(attempts)]
    assert waits_s[-1] * 1000 == pytest.approx(backoff_ms, rel=0.1)
    assert max(waits_s) * 1000 == pytest.approx(backoff_ms, rel=0.1)


@pytest.mark.parametrize("timeout_ms", [1500, 5000])
def test_a_silent_leader_is_given_up_after_a_timeout(
    make_cluster: MakeCluster, monkeypatch: pytest.MonkeyPatch, timeout_ms: int
) -> None:
    cluster = make_cluster(brokers=2, replica_socket_timeout_ms=timeout_ms)
    requests = asked(cluster, monkeypatch, silent=True)
    cluster.create("t", [led_by(1, 2)])
    cluster.run(timeout_ms - 100)
    assert len(requests) == 1
    cluster.run(1000)
    assert len(requests) == 2
    assert (requests[1][0] - requests[0][0]) * 1000 >= timeout_ms
