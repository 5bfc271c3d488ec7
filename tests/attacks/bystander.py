"""A well-behaved client in a process of its own: `python -m tests.attacks.bystander ROLE ...`.

The producer sends a numbered record to each partition in turn, idempotent, acks=all, one request
in flight. The consumer is a member of a group and expects the numbers of each partition in order,
each once. Standard input has further settings of librdkafka, as JSON. Both append lines to their
file: `ok TIME LATENCY` in ns of the machine's monotonic clock, `error TIME TEXT`, and at the end
`count PARTITION NUMBER`. SIGTERM ends them.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TextIO

from confluent_kafka import Consumer, KafkaError, Message, Producer

from tests.clients.librdkafka import SILENT

RATE_PER_S = 100
FLUSH_S = 60.0
POLL_S = 0.05
GROUP = "bystanders"
BENIGN = frozenset({KafkaError._PARTITION_EOF})


class Diary:
    def __init__(self, file: TextIO) -> None:
        self._file = file

    def ok(self, latency_ns: int) -> None:
        self._file.write(f"ok {time.monotonic_ns()} {latency_ns}\n")

    def error(self, text: object) -> None:
        self._file.write(f"error {time.monotonic_ns()} {str(text).splitlines()[0]}\n")

    def count(self, partition: int, number: int) -> None:
        self._file.write(f"count {partition} {number}\n")


class Stopping:
    def __init__(self) -> None:
        self.now = False
        signal.signal(signal.SIGTERM, lambda *_: self.stop())

    def stop(self) -> None:
        self.now = True


class Sequence:
    """The numbers of one partition, each of which must come once and in order."""

    def __init__(self) -> None:
        self.expected = 0

    def take(self, number: int) -> str:
        """Return what is wrong with the next number; an empty string if nothing is."""
        expected, self.expected = self.expected, number + 1
        return "" if number == expected else f"record {number} in place of {expected}"


def produce(
    client: Mapping[str, str], topic: str, partitions: int, diary: Diary, stopping: Stopping
) -> None:
    settings: dict[str, Any] = {
        **client,
        "acks": "all",
        "enable.idempotence": True,
        "max.in.flight": 1,
        "linger.ms": 0,
        "log_level": 0,
        "error_cb": diary.error,
    }
    producer = Producer(settings, logger=SILENT)
    numbers = [0] * partitions
    acknowledged = [0] * partitions
    next_s = time.monotonic()
    while not stopping.now:
        next_s += 1 / RATE_PER_S
        partition = sum(numbers) % partitions
        sent_ns = time.monotonic_ns()
        producer.produce(
            topic,
            b"%d %d" % (numbers[partition], sent_ns),
            partition=partition,
            on_delivery=delivered(diary, acknowledged, sent_ns),
        )
        numbers[partition] += 1
        while (left_s := next_s - time.monotonic()) > 0:
            producer.poll(left_s)
        producer.poll(0)
    if producer.flush(FLUSH_S):
        diary.error("records are not acknowledged at the end")
    finish(producer, diary, acknowledged)


def finish(producer: Producer, diary: Diary, acknowledged: list[int]) -> None:
    for partition, number in enumerate(acknowledged):
        diary.count(partition, number)


def delivered(
    diary: Diary, acknowledged: list[int], sent_ns: int
) -> Callable[[KafkaError | None, Message], None]:
    def done(error: KafkaError | None, message: Message) -> None:
        partition = message.partition()
        if error is not None or partition is None:
            diary.error(error)
            return
        acknowledged[partition] += 1
        diary.ok(time.monotonic_ns() - sent_ns)

    return done


def consume(
    client: Mapping[str, str], topic: str, partitions: int, diary: Diary, stopping: Stopping
) -> None:
    settings: dict[str, Any] = {
        **client,
        "group.id": GROUP,
        "auto.offset.reset": "earliest",
        "fetch.wait.max.ms": 100,
        "log_level": 0,
        "error_cb": diary.error,
    }
    consumer = Consumer(settings, logger=SILENT)
    consumer.subscribe([topic])
    sequences = [Sequence() for _ in range(partitions)]
    while not stopping.now:
        message = consumer.poll(POLL_S)
        if message is None:
            continue
        if (error := message.error()) is not None:
            if error.code() not in BENIGN:
                diary.error(error)
            continue
        partition, value = message.partition(), message.value()
        assert partition is not None and isinstance(value, bytes)
        number, sent_ns = map(int, value.split())
        if wrong := sequences[partition].take(number):
            diary.error(f"{topic}-{partition}: {wrong}")
        diary.ok(time.monotonic_ns() - sent_ns)
    consumer.close()
    for partition, sequence in enumerate(sequences):
        diary.count(partition, sequence.expected)


ROLES = {"producer": produce, "consumer": consume}


def main() -> int:
    role, bootstrap, topic, partitions, path = sys.argv[1:]
    client = {**json.load(sys.stdin), "bootstrap.servers": bootstrap}
    stopping = Stopping()
    with open(Path(path), "a", buffering=1, encoding="utf-8") as file:
        ROLES[role](client, topic, int(partitions), Diary(file), stopping)
    return 0


if __name__ == "__main__":
    sys.exit(main())
