"""The cost of the checks of input: a cluster with them, and one without those that
`unchecked_server.py` lists.

Both clusters run at the same time and are loaded in turn, in slices, because the speed of a machine
varies more from minute to minute than the checks cost. Two clusters with the same checks also
differ, by some 3 % for as long as they run. Every round therefore starts a new pair. The figure of
a round is the median of the ratios of two neighbouring slices.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import count
from statistics import median
from typing import NamedTuple

from benchmarks import consume, librdkafka, metadata_updates, one_record, pipelined, produce, run
from benchmarks.cluster import QUORATE, QuorateCluster
from benchmarks.figure import Figure, percentile
from benchmarks.run import Benchmark, Options
from benchmarks.target import CpuMeter
from quorate.quorum.protocol.schemas.configs import IncrementalAlterConfigsRequest

SLICE_S = 0.6
"""The duration of one load of one cluster, in s. A slice of `consume` reads all records once."""
Server = tuple[str, ...]
"""The command of a node, without its file."""
CHECKED: Server = (*QUORATE, "server")
UNCHECKED: Server = (sys.executable, "-m", "benchmarks.unchecked_server")


class Slice(NamedTuple):
    """The rate of one load of one cluster, and the CPU time of all nodes for one operation."""

    per_s: float
    cpu_s: float


Load = Callable[[QuorateCluster, int], float]
"""Loads a cluster, and returns the number of operations per second. The second argument is the
number of the slice, from 0 on in each cluster."""


def updates(outstanding: int) -> Load:
    """Return the load of metadata updates with this number of requests in flight."""
    numbers = count(1)

    def load(cluster: QuorateCluster, _: int) -> float:
        held = pipelined.hold(
            cluster.bootstrap,
            IncrementalAlterConfigsRequest.API_KEY,
            metadata_updates.change,
            metadata_updates.error_of,
            outstanding=outstanding,
            seconds=SLICE_S,
            numbers=numbers,
        )
        return held.figures("", outstanding)[0].value

    return load


def records(size: int) -> Load:
    """Return the load of a producer with values of `size` bytes. Each slice has a topic of its
    own, which is deleted."""

    def load(cluster: QuorateCluster, number: int) -> float:
        topic = f"checks-{size}-{number}"
        client = librdkafka.create_topic(cluster.bootstrap, topic, produce.PARTITIONS)
        librdkafka.wait_for_leaders(client, topic, produce.PARTITIONS)
        rate, _ = produce.produce(cluster.bootstrap, topic, size, SLICE_S)
        client.delete_topics([topic])[topic].result()
        return rate

    return load


def one_at_a_time(cluster: QuorateCluster, number: int) -> float:
    """Send one record after the other. The rate is that of the median latency."""
    if number == 0:
        client = librdkafka.create_topic(cluster.bootstrap, one_record.TOPIC)
        librdkafka.wait_for_leaders(client, one_record.TOPIC, 1)
    producer = librdkafka.producer(cluster.bootstrap, linger_ms=0)
    taken_s = []
    end_s = time.monotonic() + SLICE_S
    while time.monotonic() < end_s:
        begin_s = time.perf_counter()
        librdkafka.send_one(producer, one_record.TOPIC, one_record.VALUE)
        taken_s.append(time.perf_counter() - begin_s)
    return 1 / percentile(taken_s, 0.5)


def consumed(cluster: QuorateCluster, number: int) -> float:
    """Read a topic from its beginning. The first slice writes it before."""
    if number == 0:
        client = librdkafka.create_topic(cluster.bootstrap, consume.TOPIC, produce.PARTITIONS)
        librdkafka.wait_for_leaders(client, consume.TOPIC, produce.PARTITIONS)
        consume.fill(cluster.bootstrap)
    return consume.consume(cluster.bootstrap) * 1e6 / consume.SIZE


LOADS: Mapping[str, Load] = {
    "metadata updates, 1 outstanding": updates(1),
    "metadata updates, 32 outstanding": updates(32),
    "metadata updates, 256 outstanding": updates(256),
    "produce 1000 B": records(1000),
    "produce 100 B": records(100),
    "one record": one_at_a_time,
    "consume 1000 B": consumed,
}


def measure(system: str, options: Options) -> list[Figure]:
    """Return the ratios of the rate and of the CPU time of all nodes for each operation, with the
    checks to without them. Only Quorate can run without them.

    There are `options.rounds` rounds. In each, a cluster gets each load for `options.seconds` or
    longer in all."""
    if system != run.QUORATE:
        return []
    rates: dict[str, list[float]] = {name: [] for name in LOADS}
    costs: dict[str, list[float]] = {name: [] for name in LOADS}
    for number in range(options.rounds):
        servers = (CHECKED, UNCHECKED) if number % 2 else (UNCHECKED, CHECKED)
        with ExitStack() as stack:
            clusters = {server: stack.enter_context(running(server)) for server in servers}
            for name, load in LOADS.items():
                pairs = compared(load, clusters, max(1, round(options.seconds / SLICE_S)))
                rates[name].append(median(a.per_s / b.per_s for a, b in pairs))
                costs[name].append(median(a.cpu_s / b.cpu_s for a, b in pairs))
    figures = []
    for name in LOADS:
        figures += [
            Figure(f"{name}, rate with / without checks", median(rates[name]), ""),
            Figure("  of the lowest round", min(rates[name]), ""),
            Figure("  of the highest round", max(rates[name]), ""),
            Figure("  CPU of all nodes with / without", median(costs[name]), ""),
        ]
    return figures


def compared(
    load: Load, clusters: Mapping[Server, QuorateCluster], slices: int
) -> list[tuple[Slice, Slice]]:
    """Return pairs of neighbouring slices, with the checks and without. Each cluster comes first in
    every other pair. The slices 0 warm both clusters up."""
    pairs = []
    for number in range(slices + 1):
        order = (CHECKED, UNCHECKED) if number % 2 else (UNCHECKED, CHECKED)
        found = {server: measured(load, clusters[server], number) for server in order}
        if number:
            pairs.append((found[CHECKED], found[UNCHECKED]))
    return pairs


def measured(load: Load, cluster: QuorateCluster, number: int) -> Slice:
    """Return the slice `number`. Its CPU time covers everything that the slice does."""
    meter = CpuMeter(cluster)
    begin_s = time.monotonic()
    per_s = load(cluster, number)
    return Slice(per_s, sum(meter.used_s()) / (per_s * (time.monotonic() - begin_s)))


@contextmanager
def running(server: Server) -> Iterator[QuorateCluster]:
    """Yield a cluster whose nodes were all started again with the command `server`."""
    cluster = QuorateCluster(server)
    try:
        cluster.start()
        for node_id in cluster.node_ids():
            cluster.kill(node_id)
            cluster.restart(node_id)
        client = librdkafka.create_topic(cluster.bootstrap, metadata_updates.TOPIC)
        librdkafka.wait_for_leaders(client, metadata_updates.TOPIC, 1)
        yield cluster
    finally:
        cluster.stop()


BENCHMARK = Benchmark("cost_of_checks", offline=measure)

if __name__ == "__main__":
    run.main([BENCHMARK])
