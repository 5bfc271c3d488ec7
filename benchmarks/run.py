"""Run benchmarks on Quorate and then on the peer, each on a cluster of its own, and print both."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from benchmarks import kafka_cluster
from benchmarks.cluster import QuorateCluster
from benchmarks.figure import Figure, Row, as_json, as_table, rows
from benchmarks.kafka_cluster import KafkaCluster
from benchmarks.machine import Limits, limits
from benchmarks.target import Cluster, Remote, Target, is_cluster

NO_PEER = "none"
"""The value of --peer with which only Quorate is measured."""
QUORATE = "quorate"
"""The name of the system that is Quorate, started here."""
LOCAL_KAFKA = "kafka"
"""The name of the system that is Apache Kafka, started here."""
PARTITIONS = 100_000


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a run."""

    seconds: float
    """The duration of a load."""
    rounds: int
    """The number of times that a node is killed."""
    partitions: int = PARTITIONS
    """The number of partitions in an image."""
    other: str | None = None
    """The `quorate` of another version of Quorate."""


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One benchmark. Exactly one of its three functions is set.

    - `load` runs on any cluster.
    - `hurt` needs a cluster that it can start and kill.
    - `offline` needs no cluster. It gets the name of the system whose tools it uses.
    """

    name: str
    load: Callable[[Target, Options], list[Figure]] | None = None
    hurt: Callable[[Cluster, Options], list[Figure]] | None = None
    offline: Callable[[str, Options], list[Figure]] | None = None

    def measure(self, system: str, options: Options) -> list[Figure]:
        """Return the figures of one system: QUORATE, LOCAL_KAFKA or bootstrap servers.

        Unless the system is given by bootstrap servers, it is measured on a cluster of its own.
        Return an empty list if the benchmark cannot run on this system.
        """
        if self.offline is not None:
            return self.offline(system, options)
        with started(system) as target:
            if self.load is not None:
                return self.load(target, options)
            if self.hurt is not None and is_cluster(target):
                return self.hurt(target, options)
            return []


def main(benchmarks: Sequence[Benchmark], arguments: Sequence[str] | None = None) -> None:
    """Parse the arguments, run the chosen benchmarks, and print their figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--peer",
        default=NO_PEER,
        metavar="BOOTSTRAP",
        help="a cluster that gets the same load, or `kafka`: Apache Kafka, started here from "
        f"the jars in ${kafka_cluster.LIBS_VARIABLE}",
    )
    parser.add_argument("--format", choices=("table", "json"), default="table")
    parser.add_argument("--seconds", type=float, default=5.0, help="how long a load is held")
    parser.add_argument("--rounds", type=int, default=3, help="how often something is killed")
    parser.add_argument("--partitions", type=int, default=PARTITIONS, help="of an image")
    parser.add_argument(
        "--other", metavar="PROGRAM", help="the quorate of another version, for other_version"
    )
    if len(benchmarks) > 1:
        parser.add_argument("names", nargs="*", help=" ".join(each.name for each in benchmarks))
    chosen = parser.parse_args(arguments)
    names = getattr(chosen, "names", [])
    unknown = set(names) - {each.name for each in benchmarks}
    if unknown:
        parser.error(f"no such benchmark: {' '.join(sorted(unknown))}")
    if chosen.peer == LOCAL_KAFKA and kafka_cluster.libs() is None:
        parser.error(f"--peer kafka needs Java, and ${kafka_cluster.LIBS_VARIABLE}")
    options = Options(chosen.seconds, chosen.rounds, chosen.partitions, chosen.other)
    for benchmark in benchmarks:
        if not names or benchmark.name in names:
            shown = compared(benchmark, chosen.peer, options, limits())
            text = as_table(shown, chosen.peer) if chosen.format == "table" else as_json(shown)
            print(text, end="\n\n" if chosen.format == "table" else "\n", flush=True)


def compared(benchmark: Benchmark, peer: str, options: Options, machine: Limits) -> list[Row]:
    """Return the figures of Quorate next to those of the peer and the limits of the machine."""
    figures = benchmark.measure(QUORATE, options)
    others = benchmark.measure(peer, options) if peer != NO_PEER else []
    return rows(figures, {figure.name: figure for figure in others}, machine)


@contextmanager
def started(system: str) -> Iterator[Target]:
    """Yield a running cluster, and stop it at the end if this function has started it.

    `system` is QUORATE, LOCAL_KAFKA, or the bootstrap servers of a cluster that already runs."""
    jars = kafka_cluster.libs()
    cluster: Cluster
    if system == QUORATE:
        cluster = QuorateCluster()
    elif system == LOCAL_KAFKA and jars is not None:
        cluster = KafkaCluster(jars)
    else:
        yield Remote(system)
        return
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
