"""Producers and consumers of librdkafka for the tests of local clusters."""

from __future__ import annotations

from collections.abc import Iterable

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    Message,
    Producer,
    TopicPartition,
)

PATIENCE_S = 60.0


def produce(bootstrap: str, topic: str, values: Iterable[bytes]) -> None:
    """Produce the values. Assert that each one is acknowledged once, by all in-sync replicas."""
    producer = Producer(
        {"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 0}
    )
    failed: list[KafkaError] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            failed.append(error)

    for value in values:
        producer.produce(topic, value, partition=0, on_delivery=delivered)
    assert producer.flush(PATIENCE_S) == 0
    assert not failed


def consume(bootstrap: str, topic: str, count: int) -> list[bytes]:
    """Return the values of the first `count` records of partition 0."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False}
    )
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    values: list[bytes] = []
    while len(values) < count:
        message = consumer.poll(PATIENCE_S)
        assert message is not None, f"{len(values)} of {count} records came"
        error = message.error()
        assert error is None or error.retriable(), error
        if error is None:
            value = message.value()
            assert isinstance(value, bytes)
            values.append(value)
    consumer.close()
    return values


def numbered(count: int, first: int = 0) -> list[bytes]:
    """Return `count` different values."""
    return [b"%d" % number for number in range(first, first + count)]
