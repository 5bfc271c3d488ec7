"""Real clients see the throttle times of their quotas, and receive all records nevertheless."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, TopicPartition

from tests.clients.cluster import ProcessCluster, run_quorate
from tests.clients.kafka_python import KafkaConsumer
from tests.clients.librdkafka import ANSWER_TIMEOUT_S, admin, consumer, create_topic, producer

pytestmark = [
    pytest.mark.clients,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
VALUE = b"x" * 1000
RECORDS = 20
RATE = 2000
"""Bytes per second. A burst of 20,000 bytes passes, so that 20 records exceed the quota."""


@pytest.fixture(scope="module")
def collected() -> Iterator[None]:
    yield
    gc.collect()


def limit(cluster: ProcessCluster, client: str, quota: str) -> None:
    changed = run_quorate(
        *("configs", "--bootstrap-server", cluster.bootstrap, "--alter", "--client", client),
        *("--add-config", f"{quota}={RATE}"),
    )
    assert changed.stdout == f"Completed updating config for client {client}.\n", changed.stderr


def produce(cluster: ProcessCluster, topic: str, **settings: Any) -> float:
    """Produce RECORDS records, one in each request, and return the time in seconds."""
    client = producer(cluster.bootstrap, **settings)
    errors: list[Any] = []
    begun_s = time.monotonic()

    def delivered(error: Any, message: Any) -> None:
        if error:
            errors.append(error)

    for _ in range(RECORDS):
        client.produce(topic, VALUE, partition=0, on_delivery=delivered)
    assert client.flush(ANSWER_TIMEOUT_S) == 0
    client.poll(0.1)
    assert errors == []
    return time.monotonic() - begun_s


def test_librdkafka_is_throttled(cluster: ProcessCluster, new_topic: Callable[[], str]) -> None:
    """As a producer and as a consumer. Its callback gets the throttle times."""
    name = new_topic()
    create_topic(admin(cluster.bootstrap), name, partitions=1)
    limit(cluster, "limited-producer", "producer_byte_rate")
    limit(cluster, "limited-consumer", "consumer_byte_rate")
    told: list[float] = []
    took_s = produce(
        cluster,
        name,
        client_id="limited-producer",
        batch_num_messages=1,
        max_in_flight=1,
        throttle_cb=lambda event: told.append(event.throttle_time),
    )
    assert told, "no throttle time arrived"
    assert took_s >= 0.3, "the connection was not muted"
    told.clear()
    client = consumer(
        cluster.bootstrap,
        client_id="limited-consumer",
        fetch_message_max_bytes=4000,
        throttle_cb=lambda event: told.append(event.throttle_time),
    )
    read = read_with(client, name)
    assert read == [VALUE] * RECORDS
    assert told, "no throttle time arrived"


def read_with(client: Any, topic: str) -> list[bytes]:
    client.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    found: list[bytes] = []
    deadline_s = time.monotonic() + ANSWER_TIMEOUT_S
    while len(found) < RECORDS and time.monotonic() < deadline_s:
        message = client.poll(0.2)
        if message is not None and message.error() is None:
            found.append(message.value())
    client.close()
    return found


def test_kafka_python_is_throttled(
    cluster: ProcessCluster, new_topic: Callable[[], str], collected: None
) -> None:
    name = new_topic()
    create_topic(admin(cluster.bootstrap), name, partitions=1)
    produce(cluster, name)
    limit(cluster, "limited-python", "consumer_byte_rate")
    client = KafkaConsumer(
        name,
        bootstrap_servers=cluster.bootstrap,
        client_id="limited-python",
        auto_offset_reset="earliest",
        group_id=None,
        consumer_timeout_ms=10_000,
        max_partition_fetch_bytes=4000,
    )
    try:
        found = []
        for message in client:
            found.append(message.value)
            if len(found) == RECORDS:
                break
        assert found == [VALUE] * RECORDS
        told = [
            value
            for group in client.metrics().values()
            for name, value in group.items()
            if name == "throttle-time-max"
        ]
        assert max(told) > 0
    finally:
        client.close()
