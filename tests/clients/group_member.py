"""One member of a consumer group, in a process that a test can kill: what it is assigned and what
it consumes stands in lines on standard output.

    python -m tests.clients.group_member CLIENT BOOTSTRAP GROUP TOPIC
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterable

SESSION_TIMEOUT_MS = 6000
HEARTBEAT_INTERVAL_MS = 500
POLL_MS = 100


def say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def say_assigned(partitions: Iterable[int]) -> None:
    say("assigned", ",".join(map(str, sorted(partitions))) or "-")


def confluent(bootstrap: str, group: str, topic: str) -> None:
    from confluent_kafka import Consumer

    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "session.timeout.ms": SESSION_TIMEOUT_MS,
            "heartbeat.interval.ms": HEARTBEAT_INTERVAL_MS,
            "auto.commit.interval.ms": 100,
            "partition.assignment.strategy": "cooperative-sticky",
        }
    )
    consumer.subscribe([topic])
    before = None
    while True:
        message = consumer.poll(POLL_MS / 1000)
        now = sorted(each.partition for each in consumer.assignment())
        if now != before:
            say_assigned(now)
            before = now
        if message is not None and not message.error():
            say("record", message.partition(), message.offset())


def kafka_python(bootstrap: str, group: str, topic: str) -> None:
    from tests.clients.kafka_python import KafkaConsumer

    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        session_timeout_ms=SESSION_TIMEOUT_MS,
        heartbeat_interval_ms=HEARTBEAT_INTERVAL_MS,
        auto_commit_interval_ms=100,
    )
    # A leader that learns of the topic only when it has joined joins once more. In 3.0.12, should
    # that last longer than one poll, it forgets to ask how it ended: it owns nothing, sends no
    # heartbeat and does not come back (need_rejoin() is false as soon as it has assigned).
    while not consumer.partitions_for_topic(topic):
        time.sleep(POLL_MS / 1000)
    before = None
    while True:
        polled = consumer.poll(timeout_ms=POLL_MS)
        now = sorted(each.partition for each in consumer.assignment())
        if now != before:
            say_assigned(now)
            before = now
        for records in polled.values():
            for record in records:
                say("record", record.partition, record.offset)


def aiokafka(bootstrap: str, group: str, topic: str) -> None:
    asyncio.run(_aiokafka(bootstrap, group, topic))


async def _aiokafka(bootstrap: str, group: str, topic: str) -> None:
    from aiokafka import AIOKafkaConsumer  # type: ignore[import-untyped]

    consumer = AIOKafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        session_timeout_ms=SESSION_TIMEOUT_MS,
        heartbeat_interval_ms=HEARTBEAT_INTERVAL_MS,
        auto_commit_interval_ms=100,
    )
    await consumer.start()
    before = None
    while True:
        polled = await consumer.getmany(timeout_ms=POLL_MS)
        now = sorted(each.partition for each in consumer.assignment())
        if now != before:
            say_assigned(now)
            before = now
        for records in polled.values():
            for record in records:
                say("record", record.partition, record.offset)


CLIENTS = {"confluent": confluent, "kafka-python": kafka_python, "aiokafka": aiokafka}

if __name__ == "__main__":
    CLIENTS[sys.argv[1]](*sys.argv[2:])
