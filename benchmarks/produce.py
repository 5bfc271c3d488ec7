"""Produce throughput through librdkafka, with acks=all and three replicas, for 1 KB and 100 B
records.

The average rate is the number of records in the partitions at the end, divided by the time until
the last acknowledgement. The slowest second is shown next to it, because a rate has a meaning only
if it is sustained. The rate of a second is the number of acknowledgements in it. Only seconds in
which the benchmark sends count.
"""

from __future__ import annotations

import time
from itertools import pairwise

from confluent_kafka import Producer

from benchmarks import librdkafka, run
from benchmarks.figure import Figure
from benchmarks.run import Benchmark, Options
from benchmarks.target import Target

PARTITIONS = 3
"""The number of partitions of each topic."""
CALL_RECORDS = 1000
"""The number of records in one call of the client."""
MAX_QUEUED_BYTES = 64 << 20
"""The benchmark sends nothing while the client's queue holds more bytes of values."""
MAX_QUEUED_RECORDS = 300_000
"""The benchmark sends nothing while the client's queue holds more records."""


def measure(target: Target, options: Options) -> list[Figure]:
    """Return the average rate and that of the slowest second, for both sizes.

    The unit is MB/s for 1 KB (1000 B) and records/s for 100 B. Each size has a new topic."""
    figures = []
    for size, unit, scale in ((1000, "MB/s", 1e-3), (100, "records/s", 1.0)):
        topic = f"produce-{size}"
        client = librdkafka.create_topic(target.bootstrap, topic, PARTITIONS)
        librdkafka.wait_for_leaders(client, topic, PARTITIONS)
        whole, slowest = produce(target.bootstrap, topic, size, options.seconds)
        limit = "loopback_mb_per_s" if unit == "MB/s" else None
        name = f"produce {size} B"
        figures += [
            Figure(name, whole * scale, unit, limit, more_is_better=True),
            Figure(f"{name}, slowest second", slowest * scale, unit, more_is_better=True),
        ]
    return figures


def produce(bootstrap: str, topic: str, size: int, seconds: float) -> tuple[float, float]:
    """Send records for `seconds`, and return (average rate, rate of the slowest second) in
    records/s.

    `size` is that of a value, in bytes. The topic must be empty and have PARTITIONS partitions. In
    a run of less than a second both rates are the average. Raise RuntimeError if the partitions do
    not hold all records that were sent."""
    producer = librdkafka.producer(
        bootstrap,
        linger_ms=5,
        queue_buffering_max_messages=2 * MAX_QUEUED_RECORDS,
        queue_buffering_max_kbytes=2 * MAX_QUEUED_BYTES // 1024,
    )
    messages = [{"value": b"x" * size}] * CALL_RECORDS
    most = min(MAX_QUEUED_RECORDS, MAX_QUEUED_BYTES // size)
    marks: list[tuple[float, int]] = []
    sent = 0
    begin_s = time.monotonic()
    next_mark_s = begin_s + 1
    while (now_s := time.monotonic()) < begin_s + seconds:
        if now_s >= next_mark_s:
            marks.append((now_s, sent - len(producer)))
            next_mark_s += 1
        if len(producer) > most:
            producer.poll(0.001)
            continue
        partition = sent // CALL_RECORDS % PARTITIONS
        sent += producer.produce_batch(topic, messages, partition=partition)
    drain(producer)
    took_s = time.monotonic() - begin_s
    arrived = librdkafka.records_in(bootstrap, topic, PARTITIONS)
    if arrived != sent:
        raise RuntimeError(f"{topic}: {sent} records were sent, {arrived} are there")
    whole = arrived / took_s
    return whole, slowest_second([(begin_s, 0), *marks]) if marks else whole


def drain(producer: Producer) -> None:
    """Wait for all acknowledgements. Raise RuntimeError if some are missing after
    `librdkafka.ANSWER_TIMEOUT_S`."""
    if producer.flush(librdkafka.ANSWER_TIMEOUT_S):
        raise RuntimeError("not all records were acknowledged")


def slowest_second(marks: list[tuple[float, int]]) -> float:
    """Return the smallest rate, in records/s, between two successive marks of (time in s, records
    acknowledged so far). There must be two marks or more.

    The result is at least 0. The counts may decrease from mark to mark, because they are computed
    from the length of librdkafka's queue, which also counts events."""
    return max(0.0, min((n2 - n1) / (t2 - t1) for (t1, n1), (t2, n2) in pairwise(marks)))


BENCHMARK = Benchmark("produce", load=measure)

if __name__ == "__main__":
    run.main([BENCHMARK])
