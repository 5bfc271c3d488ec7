"""Run one load on nodes with a sampling profiler and print the functions that use most CPU time.

For each node, print two lists of functions: those in which the most samples lie directly, and those
with the most samples when the functions that they call are included.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from benchmarks import consume, create_topics, metadata_updates, one_record, produce
from benchmarks import thousand_partitions as thousand
from benchmarks.cluster import QuorateCluster
from benchmarks.run import Options
from benchmarks.sampled_server import SUFFIX

SHOWN = 25
EVERYWHERE = 0.9
"""Functions on a larger share of the stacks are not shown, unless samples lie in them directly."""
MODULES = (produce, consume, one_record, metadata_updates, create_topics, thousand)
LOADS = {module.BENCHMARK.name: module.BENCHMARK.load for module in MODULES}
ROOT = f"{Path(__file__).parent.parent}/"


def main() -> None:
    """Parse the arguments, run the load, and print the profile of each node."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("load", choices=sorted(LOADS))
    parser.add_argument("--seconds", type=float, default=5.0)
    chosen = parser.parse_args()
    load = LOADS[chosen.load]
    assert load is not None
    cluster = QuorateCluster(server=(sys.executable, "-m", "benchmarks.sampled_server"))
    try:
        cluster.start()
        for node_id in cluster.node_ids():
            cluster.kill(node_id)
            cluster.restart(node_id)
        for figure in load(cluster, Options(chosen.seconds, rounds=1)):
            print(f"{figure.name}: {figure.value:.3g} {figure.unit}")
        cluster.stop_nodes()
        for node_id in cluster.node_ids():
            show(node_id, Path(f"{cluster.properties(node_id)}{SUFFIX}"))
    finally:
        cluster.stop()


def show(node_id: int, file: Path) -> None:
    """Print the profile of one node."""
    found = json.loads(file.read_text())
    samples = max(1, found["samples"])
    places = [each for each in found["places"] if each[3] < EVERYWHERE * samples or each[2]]
    for title, column in (("own", 2), ("with what it calls", 3)):
        print(f"\nnode {node_id}, {samples} samples, {title}")
        for entry in sorted(places, key=lambda each: -each[column])[:SHOWN]:
            print(f"  {entry[column] / samples:6.1%}  {entry[0].removeprefix(ROOT)} {entry[1]}")


if __name__ == "__main__":
    main()
