"""Nodes die by SIGKILL while a client writes: what was acknowledged is there, once and in order."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import KafkaError, KafkaException, Message
from confluent_kafka.admin import AdminClient

from tests.clients.cluster import ProcessCluster, wait_for
from tests.clients.librdkafka import (
    ANSWER_TIMEOUT_S,
    admin,
    create_topic,
    exactly_once_producer,
    read_all,
)

pytestmark = pytest.mark.clients

PARTITIONS = 6
ENOUGH = 300
"""Records acknowledged before and after each fault."""
MAX_UNACKNOWLEDGED = 200


class Load:
    """An idempotent producer that numbers its records per partition, in a thread of its own."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.topic = topic
        self.acknowledged: list[list[int]] = [[] for _ in range(PARTITIONS)]
        self.failures: list[KafkaError] = []
        self._producer = exactly_once_producer(bootstrap, delivery_timeout_ms=60_000)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._send)

    @property
    def count(self) -> int:
        return sum(map(len, self.acknowledged))

    @contextmanager
    def running(self) -> Iterator[None]:
        self._thread.start()
        try:
            yield
        finally:
            self._stop.set()
            self._thread.join()
            assert self._producer.flush(ANSWER_TIMEOUT_S) == 0

    def more(self, what: str) -> None:
        """Wait until ENOUGH more records are acknowledged in every partition together."""
        goal = self.count + ENOUGH
        wait_for(lambda: self.count >= goal, f"writes are acknowledged {what}")

    def _send(self) -> None:
        number = 0
        while not self._stop.is_set():
            if len(self._producer) >= MAX_UNACKNOWLEDGED:
                self._producer.poll(0.01)
                continue
            for partition in range(PARTITIONS):
                self._producer.produce(
                    self.topic,
                    b"%d" % number,
                    partition=partition,
                    on_delivery=self._delivered(partition, number),
                )
            number += 1
            self._producer.poll(0)

    def _delivered(
        self, partition: int, number: int
    ) -> Callable[[KafkaError | None, Message], None]:
        def done(error: KafkaError | None, message: Message) -> None:
            if error is None:
                self.acknowledged[partition].append(number)
            else:
                self.failures.append(error)

        return done


def assert_exactly_once(cluster: ProcessCluster, load: Load) -> None:
    read: list[list[int]] = [[] for _ in range(PARTITIONS)]
    for message in read_all(cluster.bootstrap, [(load.topic, i) for i in range(PARTITIONS)]):
        partition, value = message.partition(), message.value()
        assert partition is not None and value is not None
        read[partition].append(int(value))
    assert load.failures == []
    assert read == load.acknowledged


def leaders(bootstrap: str, topic: str) -> dict[int, int]:
    described = admin(bootstrap).list_topics(topic, timeout=ANSWER_TIMEOUT_S).topics[topic]
    return {index: each.leader for index, each in described.partitions.items()}


def in_sync(bootstrap: str, topic: str) -> bool:
    described = admin(bootstrap).list_topics(topic, timeout=ANSWER_TIMEOUT_S).topics[topic]
    sizes = [len(each.isrs) for each in described.partitions.values()]
    return sizes == [3] * PARTITIONS


def test_brokers_die_while_a_client_writes(own_cluster: ProcessCluster) -> None:
    """Each broker in turn: every replica was a leader that died, and a follower that came back."""
    client = admin(own_cluster.bootstrap)
    create_topic(client, "orders", PARTITIONS, config={"min.insync.replicas": "2"})
    load = Load(own_cluster.bootstrap, "orders")
    with load.running():
        load.more("before any fault")
        for node in own_cluster.entry()["brokers"]:
            victim = node["id"]
            own_cluster.kill(victim)
            load.more(f"after broker {victim} was killed")
            assert victim not in leaders(own_cluster.bootstrap, "orders").values()
            own_cluster.restart(victim)
            wait_for(
                lambda: in_sync(own_cluster.bootstrap, "orders"),
                f"broker {victim} is in every ISR again",
            )
            load.more(f"after broker {victim} came back")
    assert_exactly_once(own_cluster, load)


def test_active_controllers_die_while_a_client_writes(own_cluster: ProcessCluster) -> None:
    """Data goes on without a controller, metadata with another one."""
    client = admin(own_cluster.bootstrap)
    create_topic(client, "orders", PARTITIONS)
    load = Load(own_cluster.bootstrap, "orders")
    with load.running():
        load.more("before any fault")
        for _ in range(2):
            victim = active_controller(own_cluster)
            own_cluster.kill(victim)
            create_topic_surely(client, f"after-{victim}")
            load.more(f"after controller {victim} was killed")
            own_cluster.restart(victim)
    assert_exactly_once(own_cluster, load)
    topics = set(client.list_topics(timeout=ANSWER_TIMEOUT_S).topics)
    assert topics > {"orders"}, "what was created meanwhile is there"


def create_topic_surely(client: AdminClient, name: str) -> None:
    """A request that died with the controller may have been carried out or not; that is what
    REQUEST_TIMED_OUT says, and clients ask again."""

    def created() -> bool:
        try:
            create_topic(client, name)
        except KafkaException as refused:
            code = refused.args[0].code()
            assert code in (KafkaError.REQUEST_TIMED_OUT, KafkaError.TOPIC_ALREADY_EXISTS), refused
            return bool(code == KafkaError.TOPIC_ALREADY_EXISTS)
        return True

    wait_for(created, f"topic {name} is created")


def active_controller(cluster: ProcessCluster) -> int:
    """By the logs: the last one that became active."""
    became: list[tuple[str, int]] = []
    for node in cluster.entry()["controllers"]:
        lines = cluster.node_log(node["id"]).splitlines()
        became += [(line[:23], node["id"]) for line in lines if "active controller of" in line]
    return max(became)[1]


def test_everything_is_killed_and_comes_back(own_cluster: ProcessCluster) -> None:
    """No unsynced page is lost by a SIGKILL, so what was acknowledged is still there."""
    client = admin(own_cluster.bootstrap)
    create_topic(client, "orders", PARTITIONS)
    load = Load(own_cluster.bootstrap, "orders")
    with load.running():
        load.more("before the fault")
    node_ids = [node["id"] for node in own_cluster.nodes()]
    for node_id in node_ids:
        own_cluster.kill(node_id)
    for node_id in node_ids:
        own_cluster.restart(node_id)
    wait_for(lambda: in_sync(own_cluster.bootstrap, "orders"), "every ISR is whole")
    assert_exactly_once(own_cluster, load)
