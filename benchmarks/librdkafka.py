"""librdkafka as the benchmarks use it. It is the client library of most Kafka users outside of
Java.

A function that waits for a broker blocks the calling thread. `bootstrap` is a list of addresses, as
in bootstrap.servers.
"""

from __future__ import annotations

import logging
import time
from itertools import count
from typing import Any

from confluent_kafka import Consumer, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import KafkaError, NewTopic

QUIET = logging.getLogger("benchmarks.librdkafka")
"""The logger of all clients, which discards their messages."""
QUIET.addHandler(logging.NullHandler())
QUIET.propagate = False
ANSWER_TIMEOUT_S = 60.0
"""The time, in s, after which a wait for a broker fails, except in `brokers_seen`."""
RETRY_S = 0.005
"""The pause before the next attempt, in s."""
ANY_PARTITION = -1
"""The partition for which the client chooses one."""
SETTINGS: dict[str, dict[str, Any]] = {}
"""Further settings of all clients of a cluster, by its addresses, such as those for TLS."""
EAGER: dict[str, Any] = {
    "retry_backoff_ms": 5,
    "retry_backoff_max_ms": 10,
    "reconnect_backoff_ms": 5,
    "reconnect_backoff_max_ms": 50,
    "topic_metadata_refresh_fast_interval_ms": 10,
}
"""Settings of `producer` with short backoffs, for benchmarks that measure outages. A caller passes
them (`**EAGER`). The measured outage is then that of the cluster and not of the client. Quorate and
the other targets get the same settings."""


def admin(bootstrap: str) -> AdminClient:
    """Return an admin client."""
    config = {"bootstrap.servers": bootstrap, "log_level": 0, **SETTINGS.get(bootstrap, {})}
    return AdminClient(config, logger=QUIET)


def producer(bootstrap: str, **settings: Any) -> Producer:
    """Return a producer. `settings` are librdkafka's, with `_` for `.`. The default is acks=all."""
    named = {name.replace("_", "."): value for name, value in settings.items()}
    named = {**SETTINGS.get(bootstrap, {}), **named}
    config = {"bootstrap.servers": bootstrap, "log_level": 0, **named}
    return Producer(config, logger=QUIET)


def consumer(bootstrap: str, **settings: Any) -> Consumer:
    """Return a consumer without group management. The caller assigns partitions.

    `settings` are librdkafka's, with `_` for `.`. They replace the defaults of this function."""
    named = {name.replace("_", "."): value for name, value in settings.items()}
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "log_level": 0,
            "group.id": "benchmarks",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            **SETTINGS.get(bootstrap, {}),
            **named,
        },
        logger=QUIET,
    )


def brokers_seen(bootstrap: str) -> int:
    """Return the number of brokers in the metadata, or 0 if no broker answers within 1 s."""
    try:
        return len(admin(bootstrap).list_topics(timeout=1.0).brokers)
    except KafkaException:
        return 0


def create_topic(
    bootstrap: str, name: str, partitions: int = 1, *, config: dict[str, str] | None = None
) -> AdminClient:
    """Create a topic with three replicas, and return the admin client.

    Retry after every KafkaException, because the brokers may have just started. Raise the last one
    if ANSWER_TIMEOUT_S has passed when an attempt fails. The last attempt may take that long again.
    An attempt without a result in that time raises TimeoutError. A topic that exists is an error,
    too, but only for the first attempt: a failed one may have created it."""
    client = admin(bootstrap)
    deadline_s = time.monotonic() + ANSWER_TIMEOUT_S
    for attempt in count():
        topic = NewTopic(name, partitions, 3, config=config or {})
        try:
            client.create_topics([topic])[name].result(ANSWER_TIMEOUT_S)
            break
        except KafkaException as error:
            if attempt and error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:
                break
            if time.monotonic() > deadline_s:
                raise
            time.sleep(RETRY_S)
    return client


def create_on(client: AdminClient, name: str, broker: int, config: dict[str, str]) -> None:
    """Create a topic of one partition with one replica, on this broker. Raise KafkaException."""
    topic = NewTopic(name, 1, replica_assignment=[[broker]], config=config)
    client.create_topics([topic])[name].result(ANSWER_TIMEOUT_S)


def set_config(client: AdminClient, kind: str, resource: str, name: str, value: str) -> None:
    """Set one config of a "topic" or "broker". Raise KafkaException."""
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    changed = ConfigResource(ResourceType[kind.upper()], resource, incremental_configs=[entry])
    client.incremental_alter_configs([changed])[changed].result(ANSWER_TIMEOUT_S)


def wait_for_leaders(client: AdminClient, name: str, partitions: int) -> dict[int, int]:
    """Wait until every ISR has three members, and return the broker id of each partition's leader.

    Raise RuntimeError after ANSWER_TIMEOUT_S, and KafkaException if no broker answers."""
    deadline_s = time.monotonic() + ANSWER_TIMEOUT_S
    while True:
        described = client.list_topics(name, timeout=ANSWER_TIMEOUT_S).topics[name].partitions
        if len(described) == partitions and all(len(p.isrs) == 3 for p in described.values()):
            return {index: each.leader for index, each in described.items()}
        if time.monotonic() > deadline_s:
            raise RuntimeError(f"{name}: not every replica is in sync")
        time.sleep(RETRY_S)


def send_one(client: Producer, topic: str, value: bytes, partition: int | None = None) -> None:
    """Send one record without a key, and return when it is acknowledged. None is any partition.

    Raise KafkaException if it fails, RuntimeError if there is no answer in ANSWER_TIMEOUT_S."""
    answers: list[KafkaError | None] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        answers.append(error)

    place = ANY_PARTITION if partition is None else partition
    client.produce(topic, value, partition=place, on_delivery=delivered)
    deadline_s = time.monotonic() + ANSWER_TIMEOUT_S
    while not answers:
        client.poll(0.1)
        if time.monotonic() > deadline_s:
            raise RuntimeError("a record was not acknowledged")
    if answers[0] is not None:
        raise KafkaException(answers[0])


def records_in(bootstrap: str, topic: str, partitions: int) -> int:
    """Return the number of offsets from the log starts to the high watermarks of the partitions.

    `partitions` is the number of partitions of the topic. Without transactions and compaction, the
    result is the number of records. Raise KafkaException if the leader of a partition does not
    answer in ANSWER_TIMEOUT_S."""
    from confluent_kafka import TopicPartition

    reader = consumer(bootstrap)
    try:
        total = 0
        for index in range(partitions):
            low, high = reader.get_watermark_offsets(
                TopicPartition(topic, index), timeout=ANSWER_TIMEOUT_S
            )
            total += high - low
        return total
    finally:
        reader.close()
