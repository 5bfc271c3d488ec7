"""The cost of the checks of input: a cluster with them, and one without those that
`unchecked_server.py` lists.

Both clusters run at the same time and are loaded in turn, in slices of SLICE_S, because the speed
of a machine varies more from minute to minute than the checks cost. Each figure is the median of
the ratios of two neighbouring slices.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import count
from statistics import median

from benchmarks import librdkafka, metadata_updates, pipelined, produce, run
from benchmarks.cluster import QUORATE, QuorateCluster
from benchmarks.figure import Figure
from benchmarks.run import Benchmark, Options
from benchmarks.target import CpuMeter
from quorate.quorum.protocol.schemas.configs import IncrementalAlterConfigsRequest

SLICE_S = 0.6
"""The duration of one load of one cluster, in s."""
CHECKED = (*QUORATE, "server")
UNCHECKED = (sys.executable, "-m", "benchmarks.unchecked_server")

Load = Callable[[QuorateCluster], float]
"""Loads a cluster for SLICE_S, and returns the number of operations per second."""


def updates(outstanding: int) -> Load:
    """Return the load of metadata updates with this number of requests in flight."""
    numbers = count(1)

    def load(cluster: QuorateCluster) -> float:
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
    numbers = count()

    def load(cluster: QuorateCluster) -> float:
        topic = f"checks-{size}-{next(numbers)}"
        client = librdkafka.create_topic(cluster.bootstrap, topic, produce.PARTITIONS)
        librdkafka.wait_for_leaders(client, topic, produce.PARTITIONS)
        rate, _ = produce.produce(cluster.bootstrap, topic, size, SLICE_S)
        client.delete_topics([topic])[topic].result()
        return rate

    return load


LOADS: Mapping[str, Load] = {
    "metadata updates, 1 outstanding": updates(1),
    "metadata updates, 32 outstanding": updates(32),
    "metadata updates, 256 outstanding": updates(256),
    "produce 1000 B": records(1000),
    "produce 100 B": records(100),
}


def measure(system: str, options: Options) -> list[Figure]:
    """Return the ratios of the rate and of the CPU time of all nodes for each operation, with the
    checks to without them. Only Quorate can run without them.

    Each cluster gets each load for `options.seconds` in all."""
    if system != run.QUORATE:
        return []
    figures = []
    with ExitStack() as stack:
        clusters = [stack.enter_context(running(server)) for server in (CHECKED, UNCHECKED)]
        for name, load in LOADS.items():
            rates, costs = [], []
            for turn in range(max(1, round(options.seconds / SLICE_S))):
                order = clusters if turn % 2 else clusters[::-1]
                found = {cluster: measured(load, cluster) for cluster in order}
                (rate, cpu_s), (other_rate, other_cpu_s) = (found[each] for each in clusters)
                rates.append(rate / other_rate)
                costs.append(cpu_s / other_cpu_s)
            figures += [
                Figure(f"{name}, rate with / without checks", median(rates), ""),
                Figure(f"  CPU of all nodes with / without, {name}", median(costs), ""),
            ]
    return figures


def measured(load: Load, cluster: QuorateCluster) -> tuple[float, float]:
    """Return the rate of one slice, and the CPU time of all nodes for one operation in s."""
    meter = CpuMeter(cluster)
    rate = load(cluster)
    return rate, sum(meter.used_s()) / (rate * SLICE_S)


@contextmanager
def running(server: tuple[str, ...]) -> Iterator[QuorateCluster]:
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
