"""The time from the start of three controllers and three brokers to the first replicated record."""

from __future__ import annotations

import time

from benchmarks import librdkafka, run
from benchmarks.figure import Figure
from benchmarks.run import Benchmark, Options
from benchmarks.target import Cluster

TOPIC = "first"


def first_record(cluster: Cluster) -> float:
    """Return the seconds from the start of the processes to a record that three replicas have.

    With min.insync.replicas=3 an acknowledgement means that all three have the record."""
    librdkafka.create_topic(cluster.bootstrap, TOPIC, config={"min.insync.replicas": "3"})
    librdkafka.send_one(librdkafka.producer(cluster.bootstrap, linger_ms=0), TOPIC, b"first")
    return time.monotonic() - cluster.launched_s


def measure(cluster: Cluster, _: Options) -> list[Figure]:
    """Return the time to the first record."""
    return [Figure("start to first record on 3 replicas", first_record(cluster), "s")]


BENCHMARK = Benchmark("cold_start", hurt=measure)

if __name__ == "__main__":
    run.main([BENCHMARK])
