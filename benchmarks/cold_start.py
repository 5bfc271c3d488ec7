"""From the start of 3+3 processes to the first record that three replicas have."""

from __future__ import annotations

import time

from benchmarks import librdkafka, run
from benchmarks.figure import Figure
from benchmarks.run import Benchmark, Options
from benchmarks.target import Cluster

TOPIC = "first"


def first_record(cluster: Cluster) -> float:
    """Seconds since the processes were started; the ISR of three must have it, not two of them."""
    librdkafka.create_topic(cluster.bootstrap, TOPIC, config={"min.insync.replicas": "3"})
    librdkafka.send_one(librdkafka.producer(cluster.bootstrap, linger_ms=0), TOPIC, b"first")
    return time.monotonic() - cluster.launched_s


def measure(cluster: Cluster, _: Options) -> list[Figure]:
    return [Figure("start to first record on 3 replicas", first_record(cluster), "s")]


BENCHMARK = Benchmark("cold_start", hurt=measure)

if __name__ == "__main__":
    run.main([BENCHMARK])
