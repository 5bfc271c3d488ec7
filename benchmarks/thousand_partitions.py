"""The time from creating a topic of 1,000 partitions to an acknowledged record in each of them."""

from __future__ import annotations

import time

from confluent_kafka import KafkaException, Message
from confluent_kafka.cimpl import KafkaError

from benchmarks import librdkafka, run
from benchmarks.figure import Figure
from benchmarks.run import Benchmark, Options
from benchmarks.target import Target

TOPIC = "thousand"
PARTITIONS = 1000


def measure(target: Target, _: Options) -> list[Figure]:
    """Return the times. Raise an error if a record is not acknowledged."""
    failures: list[KafkaError] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            failures.append(error)

    begin_s = time.monotonic()
    librdkafka.create_topic(target.bootstrap, TOPIC, PARTITIONS)
    created_s = time.monotonic()
    producer = librdkafka.producer(target.bootstrap, linger_ms=0)
    for index in range(PARTITIONS):
        producer.produce(TOPIC, b"x", partition=index, on_delivery=delivered)
    left = producer.flush(librdkafka.ANSWER_TIMEOUT_S)
    end_s = time.monotonic()
    if failures:
        raise KafkaException(failures[0])
    if left:
        raise RuntimeError(f"{left} partitions took no record")
    return [
        Figure("topic of 1,000 x 3: created", created_s - begin_s, "s"),
        Figure("topic of 1,000 x 3: one record in each", end_s - begin_s, "s"),
    ]


BENCHMARK = Benchmark("thousand_partitions", load=measure)

if __name__ == "__main__":
    run.main([BENCHMARK])
