"""Consumption of 1 KB records through librdkafka, from the page cache."""

from __future__ import annotations

import time

from confluent_kafka import OFFSET_BEGINNING, TopicPartition

from benchmarks import librdkafka, run
from benchmarks.figure import Figure
from benchmarks.produce import CALL_RECORDS, PARTITIONS, drain
from benchmarks.run import Benchmark, Options
from benchmarks.target import Target

TOPIC = "consume"
SIZE = 1000
RECORDS = 300_000
PASSES = 3
"""The number of passes. The best one is the main figure, because the first one meets a cold JVM (if
the target is Kafka) and cold caches."""


def measure(target: Target, _: Options) -> list[Figure]:
    """Return the throughput of the first and of the best pass."""
    client = librdkafka.create_topic(target.bootstrap, TOPIC, PARTITIONS)
    librdkafka.wait_for_leaders(client, TOPIC, PARTITIONS)
    fill(target.bootstrap)
    rates = [consume(target.bootstrap) for _ in range(PASSES)]
    return [
        Figure("consume 1000 B, first pass", rates[0], "MB/s", more_is_better=True),
        Figure(
            "consume 1000 B, best pass",
            max(rates),
            "MB/s",
            "loopback_mb_per_s",
            more_is_better=True,
        ),
    ]


def fill(bootstrap: str) -> None:
    """Write all records to the topic, evenly over its partitions."""
    producer = librdkafka.producer(bootstrap, linger_ms=5, queue_buffering_max_messages=1_000_000)
    messages = [{"value": b"x" * SIZE}] * CALL_RECORDS
    for number in range(RECORDS // CALL_RECORDS):
        while len(producer) > 50_000:
            producer.poll(0.001)
        producer.produce_batch(TOPIC, messages, partition=number % PARTITIONS)
    drain(producer)


def consume(bootstrap: str) -> float:
    """Read all records and return the throughput in MB/s.

    Raise RuntimeError if that takes longer than ANSWER_TIMEOUT_S. Without fetch.queue.backoff.ms
    librdkafka would idle for a second whenever its queue is full."""
    consumer = librdkafka.consumer(
        bootstrap, fetch_queue_backoff_ms=2, queued_min_messages=1_000_000
    )
    try:
        consumer.assign([TopicPartition(TOPIC, i, OFFSET_BEGINNING) for i in range(PARTITIONS)])
        begin_s = time.monotonic()
        missing = RECORDS
        while missing:
            found = consumer.consume(10_000, timeout=0.05)
            missing -= sum(1 for message in found if message.error() is None)
            if time.monotonic() - begin_s > librdkafka.ANSWER_TIMEOUT_S:
                raise RuntimeError(f"{missing} records were not read")
        return RECORDS * SIZE / (time.monotonic() - begin_s) / 1e6
    finally:
        consumer.close()


BENCHMARK = Benchmark("consume", load=measure)

if __name__ == "__main__":
    run.main([BENCHMARK])
