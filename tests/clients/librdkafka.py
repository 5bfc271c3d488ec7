"""confluent-kafka (librdkafka) as tests use it: silent, and blocking until the answer is there.

Its `admin` exports its names to people but not to mypy, so they are taken from where they stand.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Sequence
from typing import Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._listoffsets import (
    EarliestSpec,
    LatestSpec,
    MaxTimestampSpec,
    OffsetSpec,
)
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewPartitions, NewTopic

__all__ = [
    "EARLIEST",
    "LATEST",
    "MAX_TIMESTAMP",
    "AlterConfigOpType",
    "ConfigEntry",
    "ConfigResource",
    "NewPartitions",
    "NewTopic",
    "OffsetSpec",
    "ResourceType",
]

EARLIEST = EarliestSpec()  # type: ignore[no-untyped-call]
LATEST = LatestSpec()  # type: ignore[no-untyped-call]
MAX_TIMESTAMP = MaxTimestampSpec()  # type: ignore[no-untyped-call]

# librdkafka writes a line to stderr for every broken connection unless it is given a logger.
SILENT = logging.getLogger("tests.librdkafka")
SILENT.addHandler(logging.NullHandler())
SILENT.propagate = False

ANSWER_TIMEOUT_S = 30.0
CALLBACKS = ("on_commit", "throttle_cb")
CONSUME_TIMEOUT_S = 30.0


def admin(bootstrap: str, **settings: str) -> AdminClient:
    """`settings` have librdkafka's names."""
    return AdminClient({"bootstrap.servers": bootstrap, "log_level": 0, **settings}, logger=SILENT)


def producer(bootstrap: str, **settings: Any) -> Producer:
    """Settings are librdkafka's, with _ for the dots, and callbacks."""
    config = {
        name if name in CALLBACKS else name.replace("_", "."): value
        for name, value in settings.items()
    }
    return Producer(
        {"bootstrap.servers": bootstrap, "log_level": 0, "linger.ms": 0, **config}, logger=SILENT
    )


def exactly_once_producer(bootstrap: str, **settings: Any) -> Producer:
    """With more than one request in flight librdkafka may write records twice when a leader
    changes: what comes behind a refused request is out of order, for which it raises its epoch and
    sends again, as new, what another partition has got already (its issue 4953)."""
    return idempotent_producer(bootstrap, 1, **settings)


def idempotent_producer(bootstrap: str, in_flight: int, **settings: Any) -> Producer:
    """Send with acks=all and at most `in_flight` requests at a time (`exactly_once_producer`)."""
    window = {"max_in_flight": in_flight}
    return producer(bootstrap, enable_idempotence=True, acks="all", **window, **settings)


def consumer(bootstrap: str, **settings: Any) -> Consumer:
    """Of no group: partitions are assigned by hand, nothing is committed."""
    config = {
        name if name in CALLBACKS else name.replace("_", "."): value
        for name, value in settings.items()
    }
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "log_level": 0,
            "group.id": "none",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 50,
            "fetch.queue.backoff.ms": 2,
            **config,
        },
        logger=SILENT,
    )


def create_topic(
    client: AdminClient,
    name: str,
    partitions: int = 1,
    replication_factor: int = 3,
    config: dict[str, str] | None = None,
) -> None:
    topic = NewTopic(name, partitions, replication_factor, config=config or {})
    client.create_topics([topic])[name].result(ANSWER_TIMEOUT_S)


def read_all(
    bootstrap: str, partitions: Iterable[tuple[str, int]], start: int = OFFSET_BEGINNING
) -> list[Message]:
    """Every record up to the end of each partition."""
    assignment = [TopicPartition(topic, index, start) for topic, index in partitions]
    reader = consumer(bootstrap)
    try:
        reader.assign(assignment)
        return until_end(reader, len(assignment))
    finally:
        reader.close()


def until_end(reader: Consumer, partitions: int) -> list[Message]:
    messages: list[Message] = []
    ended: set[tuple[str | None, int | None]] = set()
    deadline = time.monotonic() + CONSUME_TIMEOUT_S
    while len(ended) < partitions:
        assert time.monotonic() < deadline, f"only {len(messages)} records, ends: {sorted(ended)}"
        for message in reader.consume(1000, timeout=0.1):
            error = message.error()
            if error is None:
                messages.append(message)
            elif error.code() == KafkaError._PARTITION_EOF:
                ended.add((message.topic(), message.partition()))
            else:
                assert error.retriable(), error
    return messages


def values(messages: Sequence[Message]) -> list[bytes | None]:
    return [message.value() for message in messages]
