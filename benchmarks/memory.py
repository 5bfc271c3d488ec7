"""Memory of the six processes after the load of cold_start, as proportional set size."""

from __future__ import annotations

from benchmarks import run
from benchmarks.cold_start import first_record
from benchmarks.figure import Figure
from benchmarks.run import Benchmark, Options
from benchmarks.target import Cluster, pss_mb


def measure(cluster: Cluster, _: Options) -> list[Figure]:
    """Return the memory of the cluster in MB."""
    first_record(cluster)
    return [Figure("memory of the six processes", pss_mb(cluster.pids()), "MB")]


BENCHMARK = Benchmark("memory", hurt=measure)

if __name__ == "__main__":
    run.main([BENCHMARK])
