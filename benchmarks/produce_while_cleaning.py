"""The latency of one record at a time while the log cleaner works in the leader's process.

The leader cleans one compacted log after another. Before each cleaning, records are sent without
one, so that both kinds of turns meet the same machine. The compacted topics have one replica. With
three, three processes would clean on the cores of one machine.

Two topics are measured: one with default settings, and one with flush.messages=1, where each record
waits for an fsync on three disks.
"""

from __future__ import annotations

import random
import time

from confluent_kafka.admin import AdminClient

from benchmarks import librdkafka, run
from benchmarks.figure import Figure, percentile
from benchmarks.run import Benchmark, Options
from benchmarks.target import Cluster

TOPICS: dict[str, dict[str, str]] = {"plain": {}, "flushed": {"flush.messages": "1"}}
"""The measured topics with their configs."""
VALUE = b"x" * 1024
WARM_UP_RECORDS = 200
KEYS = 20_000
VALUE_BYTES = 200
LOG_BYTES = 24 << 20
RATIO = "min.cleanable.dirty.ratio"
COMPACTED = {
    "cleanup.policy": "compact",
    "segment.bytes": str(4 << 20),
    "flush.messages": "10000",
    RATIO: "1.0",
}
"""The configs of a compacted topic. Nothing is cleaned until its ratio is lowered."""
TURNS_PER_ROUND = 2
TURN_S = 1.5
"""The time of a turn without the cleaner."""
CLEANING_TIMEOUT_S = 60.0


def measure(cluster: Cluster, options: Options) -> list[Figure]:
    """Return the 99th percentiles with and without the cleaner, and their ratio, for both topics.

    There are TURNS_PER_ROUND cleanings for each of `options.rounds`."""
    client = librdkafka.admin(cluster.bootstrap)
    places, leader = measured_partitions(cluster.bootstrap, client)
    librdkafka.set_config(client, "broker", str(leader), "log.cleaner.backoff.ms", "100")
    logs = [f"kept-{number}" for number in range(TURNS_PER_ROUND * options.rounds)]
    for name in logs:
        librdkafka.create_on(client, name, leader, COMPACTED)
        fill(cluster.bootstrap, name)
    producer = librdkafka.producer(cluster.bootstrap, linger_ms=0)

    def send() -> dict[str, float]:
        taken_ms = {}
        for name, partition in places.items():
            begin_s = time.perf_counter()
            librdkafka.send_one(producer, name, VALUE, partition)
            taken_ms[name] = (time.perf_counter() - begin_s) * 1000
        return taken_ms

    for _ in range(WARM_UP_RECORDS):
        send()
    without, during = [], []
    cleaning_s = 0.0
    for name in logs:
        # A change of a config costs time on all nodes, so that both turns begin with one.
        librdkafka.set_config(client, "topic", name, "retention.ms", "600000")
        end_s = time.monotonic() + TURN_S
        while time.monotonic() < end_s:
            without.append(send())
        librdkafka.set_config(client, "topic", name, RATIO, "0")
        begin_s = time.monotonic()
        while not is_clean(cluster, name):
            during.append(send())
            if time.monotonic() > begin_s + CLEANING_TIMEOUT_S:
                raise RuntimeError(f"{name} was not cleaned")
        cleaning_s += time.monotonic() - begin_s
    rate = len(logs) * LOG_BYTES / cleaning_s / 1e6
    figures = [Figure("cleaning while records are sent", rate, "MB/s", more_is_better=True)]
    for name in TOPICS:
        off, on = (percentile([each[name] for each in taken], 0.99) for taken in (without, during))
        figures += [
            Figure(f"{name} record, p99 without the cleaner", off, "ms"),
            Figure(f"{name} record, p99 with the cleaner", on, "ms"),
            Figure(f"{name} record, p99 with / without", on / off, "x"),
        ]
    return figures


def measured_partitions(bootstrap: str, client: AdminClient) -> tuple[dict[str, int], int]:
    """Create TOPICS. Return a partition of each, all with the same leader, and that leader."""
    for name, config in TOPICS.items():
        librdkafka.create_topic(bootstrap, name, 3, config=config)
    leaders = {name: librdkafka.wait_for_leaders(client, name, 3) for name in TOPICS}
    leader = leaders["plain"][0]
    places = {
        name: next(partition for partition, broker in found.items() if broker == leader)
        for name, found in leaders.items()
    }
    return places, leader


def fill(bootstrap: str, name: str) -> None:
    """Send LOG_BYTES of records of KEYS keys."""
    rand = random.Random(1)
    producer = librdkafka.producer(bootstrap, linger_ms=5, queue_buffering_max_messages=1_000_000)
    for _ in range(LOG_BYTES // VALUE_BYTES):
        producer.produce(name, rand.randbytes(VALUE_BYTES), b"key-%08d" % rand.randrange(KEYS))
        producer.poll(0)
    if producer.flush(librdkafka.ANSWER_TIMEOUT_S):
        raise RuntimeError("not all records were acknowledged")


def is_clean(cluster: Cluster, name: str) -> bool:
    """Return True if a broker has noted that it has cleaned the log."""
    line = f"{name} 0 "
    for directory in cluster.broker_directories():
        try:
            text = (directory / "cleaner-offset-checkpoint").read_text()
        except FileNotFoundError:
            continue
        if any(each.startswith(line) for each in text.splitlines()):
            return True
    return False


BENCHMARK = Benchmark("produce_while_cleaning", hurt=measure)

if __name__ == "__main__":
    run.main([BENCHMARK])
