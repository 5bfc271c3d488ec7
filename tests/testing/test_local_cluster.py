"""LocalCluster with the clients and calls of its users."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition  # type: ignore[import-untyped]

from quorate.config.key import ConfigError
from quorate.quorum.log.disks.os_file import OsFile
from quorate.quorum.node.opening.directory_lock import NodeRefused
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.wire import Message
from quorate.quorum.rpc.kafka.client import Disconnected, KafkaClient
from quorate.testing import (
    LocalCluster,
    NodeFailed,
    NotInTime,
    ThreadedCluster,
    TopicRefused,
    WrongState,
)
from tests.testing.clients import consume, numbered, produce

# A broker that is silent for a second is fenced. A silent active controller is replaced.
QUICK = {
    "broker.heartbeat.interval.ms": 200,
    "broker.session.timeout.ms": 1000,
    "replica.lag.time.max.ms": 1000,
    "controller.quorum.fetch.timeout.ms": 500,
    "controller.quorum.election.timeout.ms": 500,
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[ThreadedCluster]:
    """A cluster of three controllers and three brokers with short timeouts."""
    with LocalCluster(controllers=3, brokers=3, config=QUICK) as cluster:
        yield cluster


def test_nothing_acknowledged_is_lost_with_the_leader(cluster: ThreadedCluster) -> None:
    cluster.create_topic("orders")
    produce(cluster.bootstrap, "orders", numbered(100))
    killed = cluster.leader("orders")
    cluster.kill_broker(killed)
    produce(cluster.bootstrap, "orders", numbered(100, first=100))
    assert cluster.leader("orders") != killed
    assert cluster.isr("orders") == [each for each in cluster.broker_ids if each != killed]
    cluster.restart(killed)
    cluster.wait_ready()
    cluster.wait_in_sync("orders")
    assert consume(cluster.bootstrap, "orders", 200) == numbered(200)


def test_a_paused_broker_is_fenced_and_comes_back(cluster: ThreadedCluster) -> None:
    cluster.create_topic("paused")
    paused = cluster.leader("paused")
    cluster.pause(paused)
    cluster.wait_fenced(paused)
    assert cluster.leader("paused") != paused
    produce(cluster.bootstrap, "paused", numbered(10))
    cluster.resume(paused)
    cluster.wait_ready()
    cluster.wait_in_sync("paused")
    assert consume(cluster.bootstrap, "paused", 10) == numbered(10)


@pytest.mark.parametrize("silent", [False, True], ids=["cut", "silent"])
def test_a_broker_that_is_parted_from_the_controllers(
    cluster: ThreadedCluster, silent: bool
) -> None:
    topic = f"parted-{silent}"
    cluster.create_topic(topic)
    parted = cluster.leader(topic)
    cluster.partition(parted, cluster.controller_ids, silent=silent)
    cluster.wait_fenced(parted)
    assert cluster.leader(topic) != parted
    cluster.heal()
    cluster.wait_ready()
    cluster.wait_in_sync(topic)


def test_brokers_that_are_parted_from_each_other(cluster: ThreadedCluster) -> None:
    """No broker is fenced. The leader removes the follower that does not fetch from the ISR."""
    cluster.create_topic("alone", config={"min.insync.replicas": 1})
    leader = cluster.leader("alone")
    others = [each for each in cluster.broker_ids if each != leader]
    cluster.partition(leader, others)
    cluster.partition(leader, others)  # a repetition changes nothing
    produce(cluster.bootstrap, "alone", [b"one"])
    assert cluster.leader("alone") == leader
    cluster.heal()
    cluster.wait_in_sync("alone")


def test_a_follower_that_is_not_heard_leaves_the_isr(cluster: ThreadedCluster) -> None:
    """The leader loses all messages of the follower, so its fetches, and not its heartbeats."""
    cluster.create_topic("one-way", config={"min.insync.replicas": 1})
    leader = cluster.leader("one-way")
    follower = next(each for each in cluster.broker_ids if each != leader)
    cluster.one_way(follower, leader)
    produce(cluster.bootstrap, "one-way", [b"one"])
    assert follower not in cluster.isr("one-way")
    cluster.heal()
    cluster.wait_in_sync("one-way")


def test_slow_links_and_slow_disks_lose_nothing(cluster: ThreadedCluster) -> None:
    cluster.create_topic("slow")
    leader = cluster.leader("slow")
    cluster.delay(leader, 150)
    cluster.slow_disk(cluster.controller_id(), 50)
    began_s = time.monotonic()
    produce(cluster.bootstrap, "slow", [b"one"])
    assert time.monotonic() - began_s >= 0.15, "a follower's fetch is delayed"
    cluster.heal()
    assert consume(cluster.bootstrap, "slow", 1) == [b"one"]
    with pytest.raises(ValueError, match="disk_delay_ms: value -1 must be"):
        cluster.slow_disk(leader, -1)


def test_a_broker_with_a_full_disk_stops_and_returns(cluster: ThreadedCluster) -> None:
    cluster.create_topic("full")
    full = cluster.leader("full")
    cluster.fill_disk(full)
    cluster.wait_fenced(full)
    produce(cluster.bootstrap, "full", numbered(10))
    assert cluster.leader("full") != full
    cluster.restart(full)
    cluster.wait_ready()
    cluster.wait_in_sync("full")
    assert consume(cluster.bootstrap, "full", 10) == numbered(10)


def test_the_active_controller_dies(cluster: ThreadedCluster) -> None:
    killed = cluster.kill_controller()
    assert cluster.controller_id() != killed
    cluster.create_topic("after")
    cluster.restart(killed)
    cluster.wait_ready()
    successor = cluster.controller_id()
    cluster.pause(successor)
    assert cluster.controller_id() != successor
    cluster.resume(successor)
    cluster.create_topic("after-pause")


def test_leaderships_move_before_a_broker_that_is_stopped(cluster: ThreadedCluster) -> None:
    cluster.create_topic("moved")
    stopped = cluster.leader("moved")
    cluster.stop(stopped)
    assert cluster.leader("moved") != stopped
    cluster.restart(stopped)
    cluster.wait_ready()
    cluster.wait_in_sync("moved")


def test_calls_that_make_no_sense_are_refused(cluster: ThreadedCluster) -> None:
    broker, controller = cluster.broker_ids[0], cluster.controller_ids[0]
    with pytest.raises(WrongState, match="node 99 does not exist: the nodes are"):
        cluster.kill_broker(99)
    with pytest.raises(WrongState, match="is not a broker"):
        cluster.kill_broker(controller)
    with pytest.raises(WrongState, match="is not a controller"):
        cluster.kill_controller(broker)
    with pytest.raises(WrongState, match="is running: kill or stop it first"):
        cluster.restart(broker)
    with pytest.raises(WrongState, match="from itself"):
        cluster.partition(broker, cluster.broker_ids)
    cluster.heal()
    with pytest.raises(TopicRefused, match="INVALID_REPLICATION_FACTOR"):
        cluster.create_topic("too-many", replication_factor=4)
    with pytest.raises(NotInTime, match="a leader of nothing-0"):
        cluster.leader("nothing", timeout_s=0.01)
    with pytest.raises(ValueError, match="brokers: value 0 must be from 1"):
        LocalCluster(brokers=0)


@pytest.mark.parametrize(
    "lost", [ErrorCode.REQUEST_TIMED_OUT, None], ids=["the broker's", "all of the broker"]
)
async def test_a_topic_is_created_although_the_first_answer_is_lost(
    monkeypatch: pytest.MonkeyPatch, lost: ErrorCode | None
) -> None:
    """Without the repetition, a test failed because the active controller changed during it."""
    call, asked = KafkaClient.call, []

    async def losing(client: KafkaClient, request: Message) -> Any:
        answer = await call(client, request)
        asked.append(answer.topics[0].error_code)
        if len(asked) > 1:
            return answer
        if lost is None:
            raise Disconnected("the connection is lost")
        return replace(answer, topics=(replace(answer.topics[0], error_code=lost),))

    async with LocalCluster() as cluster:
        monkeypatch.setattr(KafkaClient, "call", losing)
        await cluster.create_topic("orders")
        assert asked == [ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS]
        del asked[:]
        with pytest.raises(TopicRefused, match="TOPIC_ALREADY_EXISTS"):
            await cluster.create_topic("orders")  # it existed before


async def test_on_the_loop_of_the_test_with_an_asyncio_client() -> None:
    async with LocalCluster(brokers=3) as cluster:
        await cluster.create_topic("orders", replication_factor=3)
        async with AIOKafkaProducer(
            bootstrap_servers=cluster.bootstrap, acks="all", enable_idempotence=True
        ) as producer:
            for value in numbered(20):
                await producer.send_and_wait("orders", value)
            await cluster.kill_broker(await cluster.leader("orders"))
            for value in numbered(20, first=20):
                await producer.send_and_wait("orders", value)
        consumer = AIOKafkaConsumer(
            bootstrap_servers=cluster.bootstrap, auto_offset_reset="earliest"
        )
        await consumer.start()
        consumer.assign([TopicPartition("orders", 0)])
        values = [(await consumer.getone()).value for _ in range(40)]
        await consumer.stop()
        assert values == numbered(40)


def test_a_node_that_fails_fails_the_test(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    sync = OsFile.sync

    def fail(file: OsFile) -> None:
        if file.path.startswith(str(tmp_path)):
            raise OSError(5, "Input/output error", file.path)
        sync(file)

    doomed = LocalCluster(dir=tmp_path)
    with pytest.raises(NodeFailed, match=r"node \d failed: OSError"), doomed as cluster:
        monkeypatch.setattr(OsFile, "sync", fail)
        with pytest.raises((NodeFailed, TopicRefused)):
            cluster.create_topic("orders")
            cluster.leader("orders")
        monkeypatch.undo()


def test_a_cluster_that_cannot_start_says_why(tmp_path: Path) -> None:
    with (
        pytest.raises(ConfigError, match=r"broker.session.timeout.ms \(5\)"),
        LocalCluster(config={"broker.session.timeout.ms": 5}),
    ):
        pass
    before = threading.active_count()
    with LocalCluster(dir=tmp_path), pytest.raises(NodeRefused, match="in use by another process"):
        LocalCluster(dir=tmp_path).__enter__()
    assert threading.active_count() == before


def test_a_directory_keeps_the_cluster(tmp_path: Path) -> None:
    with LocalCluster(dir=tmp_path) as cluster:
        cluster.create_topic("kept")
        produce(cluster.bootstrap, "kept", numbered(3))
    with LocalCluster(dir=tmp_path) as cluster:
        assert consume(cluster.bootstrap, "kept", 3) == numbered(3)
    with pytest.raises(ValueError, match=r"holds a cluster of the nodes \[1, 2\], not \[1, 2, 3\]"):
        LocalCluster(brokers=2, dir=tmp_path).__enter__()
