"""The cost of the checks of input: a cluster with them, and one without those that
`unchecked_server.py` lists."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from benchmarks import librdkafka, metadata_updates, paired, run
from benchmarks.cluster import QUORATE, QuorateCluster
from benchmarks.figure import Figure
from benchmarks.run import Benchmark, Options

Server = tuple[str, ...]
"""The command of a node, without its file."""
CHECKED: Server = (*QUORATE, "server")
UNCHECKED: Server = (sys.executable, "-m", "benchmarks.unchecked_server")


def measure(system: str, options: Options) -> list[Figure]:
    """Return the ratios with the checks to without them. Only Quorate can run without them."""
    if system != run.QUORATE:
        return []
    with_checks, without = partial(running, CHECKED), partial(running, UNCHECKED)
    return paired.measure(with_checks, without, options, "with / without checks")


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
