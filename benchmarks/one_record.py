"""The latency of one record at a time, with acks=all and three replicas."""

from __future__ import annotations

import time

from benchmarks import librdkafka, run
from benchmarks.figure import Figure, percentile
from benchmarks.run import Benchmark, Options
from benchmarks.target import Target

TOPIC = "one-record"
VALUE = b"x" * 1024
WARM_UP_RECORDS = 200


def measure(target: Target, options: Options) -> list[Figure]:
    """Return the 50th and the 99th percentile of the latency."""
    client = librdkafka.create_topic(target.bootstrap, TOPIC)
    librdkafka.wait_for_leaders(client, TOPIC, 1)
    producer = librdkafka.producer(target.bootstrap, linger_ms=0)
    for _ in range(WARM_UP_RECORDS):
        librdkafka.send_one(producer, TOPIC, VALUE)
    taken_ms = []
    end_s = time.monotonic() + options.seconds
    while time.monotonic() < end_s:
        begin_s = time.perf_counter()
        librdkafka.send_one(producer, TOPIC, VALUE)
        taken_ms.append((time.perf_counter() - begin_s) * 1000)
    return [
        Figure("one record, p50", percentile(taken_ms, 0.5), "ms", "round_trip_ms"),
        Figure("one record, p99", percentile(taken_ms, 0.99), "ms"),
    ]


BENCHMARK = Benchmark("one_record", load=measure)

if __name__ == "__main__":
    run.main([BENCHMARK])
