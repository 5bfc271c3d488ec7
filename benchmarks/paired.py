"""Two clusters that run at the same time and are loaded in turn, in slices.

The speed of a machine varies more from minute to minute than most changes of the code cost. Two
clusters of the same code also differ, by some 3 % for as long as they run. Every round therefore
starts a new pair. The figure of a round is the median of the ratios of two neighbouring slices.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from itertools import count
from statistics import median
from typing import NamedTuple

from benchmarks import consume, librdkafka, metadata_updates, one_record, pipelined, produce
from benchmarks.cluster import QuorateCluster
from benchmarks.figure import Figure, percentile
from benchmarks.run import Options
from benchmarks.target import CpuMeter
from quorate.quorum.protocol.schemas.configs import IncrementalAlterConfigsRequest

SLICE_S = 0.6
"""The duration of one load of one cluster, in s. A slice of `consume` reads all records once."""
Start = Callable[[], AbstractContextManager[QuorateCluster]]
"""Starts a cluster, and stops it at the end."""


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


def measure(first: Start, second: Start, options: Options, names: str) -> list[Figure]:
    """Return the ratios of the rate, and of the CPU time of all nodes for each operation, of the
    first cluster to the second one. `names` says for the reader which ratio that is.

    There are `options.rounds` rounds. In each, a cluster gets each load for `options.seconds` or
    longer in all."""
    rates: dict[str, list[float]] = {name: [] for name in LOADS}
    costs: dict[str, list[float]] = {name: [] for name in LOADS}
    slices = max(1, round(options.seconds / SLICE_S))
    for number in range(options.rounds):
        with ExitStack() as stack:
            if number % 2:
                one, other = (stack.enter_context(start()) for start in (first, second))
            else:
                other, one = (stack.enter_context(start()) for start in (second, first))
            for name, load in LOADS.items():
                pairs = list(compared(load, one, other, slices))
                rates[name].append(median(a.per_s / b.per_s for a, b in pairs))
                costs[name].append(median(a.cpu_s / b.cpu_s for a, b in pairs))
    return [
        figure
        for name in LOADS
        for figure in (
            Figure(f"{name}, rate {names}", median(rates[name]), ""),
            Figure("  of the lowest round", min(rates[name]), ""),
            Figure("  of the highest round", max(rates[name]), ""),
            Figure(f"  CPU of all nodes {names}", median(costs[name]), ""),
        )
    ]


def compared(
    load: Load, first: QuorateCluster, second: QuorateCluster, slices: int
) -> Iterator[tuple[Slice, Slice]]:
    """Yield pairs of neighbouring slices of the two clusters. Each cluster comes first in every
    other pair. The slices 0 warm both clusters up."""
    for number in range(slices + 1):
        if number % 2:
            one, other = measured(load, first, number), measured(load, second, number)
        else:
            other, one = measured(load, second, number), measured(load, first, number)
        if number:
            yield one, other


def measured(load: Load, cluster: QuorateCluster, number: int) -> Slice:
    """Return the slice `number`. Its CPU time covers everything that the slice does."""
    meter = CpuMeter(cluster)
    begin_s = time.monotonic()
    per_s = load(cluster, number)
    return Slice(per_s, sum(meter.used_s()) / (per_s * (time.monotonic() - begin_s)))
