"""The time for which a partition accepts no acks=all writes after `kill -9` of its leader."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from statistics import median

from confluent_kafka import Message
from confluent_kafka.cimpl import KafkaError

from benchmarks import librdkafka, run
from benchmarks.figure import Figure
from benchmarks.run import Benchmark, Options
from benchmarks.target import Cluster

TOPIC = "failover"
RHYTHM_S = 0.002
"""The interval between two records."""
BEFORE_S = 0.5
"""The time for which the client writes before the kill."""


def measure(cluster: Cluster, options: Options) -> list[Figure]:
    """Return the median and the longest outage over several kills."""
    client = librdkafka.create_topic(cluster.bootstrap, TOPIC, config={"min.insync.replicas": "2"})
    taken_s = []
    for _ in range(options.rounds):
        leader = librdkafka.wait_for_leaders(client, TOPIC, 1)[0]
        taken_s.append(outage_s(cluster.bootstrap, partial(cluster.kill, leader)))
        cluster.restart(leader)
    return [
        Figure("failover of a broker, median", median(taken_s), "s"),
        Figure("failover of a broker, longest", max(taken_s), "s"),
    ]


def outage_s(bootstrap: str, kill: Callable[[], float]) -> float:
    """Call `kill`, which kills the leader and returns the time. Return the seconds until the first
    record that a client of `bootstrap` sends afterwards is acknowledged.

    Raise RuntimeError after ANSWER_TIMEOUT_S."""
    producer = librdkafka.producer(bootstrap, linger_ms=0, **librdkafka.EAGER)
    killed_s = 0.0
    acknowledged_s = 0.0

    def delivered_after(error: KafkaError | None, _: Message) -> None:
        nonlocal acknowledged_s
        if error is None and not acknowledged_s:
            acknowledged_s = time.monotonic()

    begin_s = time.monotonic()
    while not acknowledged_s:
        if not killed_s and time.monotonic() - begin_s > BEFORE_S:
            killed_s = kill()
        if killed_s:
            producer.produce(TOPIC, b"x", on_delivery=delivered_after)
        else:
            producer.produce(TOPIC, b"x")
        producer.poll(0)
        time.sleep(RHYTHM_S)
        if time.monotonic() - begin_s > librdkafka.ANSWER_TIMEOUT_S:
            raise RuntimeError(f"no write within {librdkafka.ANSWER_TIMEOUT_S} s of the kill")
    producer.flush(librdkafka.ANSWER_TIMEOUT_S)
    return acknowledged_s - killed_s


BENCHMARK = Benchmark("failover_broker", hurt=measure)

if __name__ == "__main__":
    run.main([BENCHMARK])
