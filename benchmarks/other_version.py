"""This version of Quorate compared with another one, that of `--other PROGRAM`.

PROGRAM is the `quorate` of the other version's virtual environment. Without it there are no
figures. A version that lacks an option of `quorate up --dir D --port 0` cannot be compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from benchmarks import librdkafka, metadata_updates, paired, run
from benchmarks.cluster import QUORATE, QuorateCluster
from benchmarks.figure import Figure
from benchmarks.run import Benchmark, Options


def measure(system: str, options: Options) -> list[Figure]:
    """Return the ratios of this version to the other one."""
    if system != run.QUORATE or options.other is None:
        return []
    this, other = partial(running, QUORATE), partial(running, (options.other,))
    return paired.measure(this, other, options, "of this / the other version")


@contextmanager
def running(program: Sequence[str]) -> Iterator[QuorateCluster]:
    """Yield a cluster of the version that `program` is."""
    cluster = QuorateCluster(program=program)
    try:
        cluster.start()
        client = librdkafka.create_topic(cluster.bootstrap, metadata_updates.TOPIC)
        librdkafka.wait_for_leaders(client, metadata_updates.TOPIC, 1)
        yield cluster
    finally:
        cluster.stop()


BENCHMARK = Benchmark("other_version", offline=measure)

if __name__ == "__main__":
    run.main([BENCHMARK])
