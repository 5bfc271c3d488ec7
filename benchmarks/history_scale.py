"""The history of clusters at several sizes: planning, tables in Spark, and one moment.

The cost for each record must not depend on the size of the log, nor on the number of clusters. The
rates are those of CPU time, in which other processes of the machine count little. Memory is the
largest resident set of Spark's Java and of one of its Python workers, and that of this process for
a moment.

A moment is asked 1,000 records behind a snapshot, near the end of the log. Without the snapshot it
would need a replay of the whole log.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import run
from benchmarks.decode import (
    BATCH_RECORDS,
    FIRST_TIMESTAMP_MS,
    JAVA_OPTIONS,
    LOG_NAME,
    descendants,
    descendants_cpu_s,
    history,
)
from benchmarks.figure import Figure
from benchmarks.run import QUORATE, Benchmark, Options
from quorate.quorum.log.batches.batch import build_value_batch
from quorate.quorum.metadata.framing import encode_record
from quorate.quorum.metadata.snapshot import snapshot_records

SIZES = (1_000_000, 2_000_000, 4_000_000)
"""The records of each log. QUORATE_HISTORY_SIZES, such as "10000000,100000000", replaces them."""
SIZES_VARIABLE = "QUORATE_HISTORY_SIZES"
CLUSTERS_VARIABLE = "QUORATE_HISTORY_CLUSTERS"
"""The number of clusters, 1 by default. Their logs are one file with several names."""
TABLES_VARIABLE = "QUORATE_HISTORY_TABLES"
"""The tables, "leadership" by default. "all" means all tables."""
NEAR_RECORDS = 1_000
REPEATED_RECORDS = 60_000
"""The log repeats the changes of this many records, so that a large log is written fast."""
LOG_DIRECTORY = "__cluster_metadata-0"
PROCESSES = {"Java": b"SparkSubmit", "a Python worker": b"pyspark.daemon"}
"""The processes of Spark, with a word of their command lines."""
MEBIBYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class Logs:
    """The logs of `clusters` clusters in `root`. Each has `records` records."""

    root: Path
    records: int
    clusters: int

    def directories(self) -> list[Path]:
        """Return the directory of each log."""
        return [self.root / str(each) / LOG_DIRECTORY for each in range(self.clusters)]

    def all_records(self) -> int:
        """Return the number of records of all logs."""
        return self.records * self.clusters

    def __str__(self) -> str:
        """Return the beginning of the names of the figures."""
        of = f" of {self.clusters} clusters" if self.clusters > 1 else ""
        return f"history of {self.all_records():,} records{of}"

    def rate(self, what: str, taken_s: float) -> Figure:
        """Return the figure for handling all records in this time."""
        speed = self.all_records() / taken_s
        return Figure(f"{self}, {what}", speed, "records/s", more_is_better=True)


def measure(system: str, _: Options) -> list[Figure]:
    """Return the figures of each size. Only Quorate has such tables."""
    if system != QUORATE:
        return []
    chosen = os.environ.get(SIZES_VARIABLE, "")
    sizes = tuple(int(each) for each in chosen.split(",")) if chosen else SIZES
    clusters = int(os.environ.get(CLUSTERS_VARIABLE, "1"))
    figures: list[Figure] = []
    for records in sizes:
        with TemporaryDirectory(prefix="quorate-bench-") as root:
            logs = Logs(Path(root), records, clusters)
            write_logs(logs)
            figures += planning(logs)
            if clusters == 1:
                figures += a_moment(logs)
            if find_spec("pyspark") is not None:
                figures += in_spark(logs)
    return figures


def planning(logs: Logs) -> Iterator[Figure]:
    """Yield the rate of the first pass over the logs, in one process."""
    from quorate.quorum.analytics.log.segments import log_slices

    begin_s = time.process_time()
    for directory in logs.directories():
        log_slices(directory)
    yield logs.rate("first pass", time.process_time() - begin_s)


def a_moment(logs: Logs) -> Iterator[Figure]:
    """Yield the time and memory of the cluster's state near a snapshot."""
    from quorate.quorum.analytics.replay.moment import moment

    (directory,) = logs.directories()
    end_offset = logs.records - 2 * NEAR_RECORDS
    state = moment(directory, offset=end_offset - 1)
    epoch = state.epoch
    snapshot = directory / f"{end_offset:020d}-{epoch:010d}.checkpoint"
    values = [encode_record(each) for each in snapshot_records(state.image)]
    snapshot.write_bytes(
        build_value_batch(
            values, base_offset=0, leader_epoch=epoch, timestamp_ms=state.timestamp_ms
        )
    )
    begin_s = time.monotonic()
    moment(directory, offset=end_offset - 1 + NEAR_RECORDS)
    yield Figure(f"{logs}, one moment", (time.monotonic() - begin_s) * 1000, "ms")
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / MEBIBYTE
    yield Figure(f"{logs}, memory up to one moment", used, "MiB")


def in_spark(logs: Logs) -> Iterator[Figure]:
    """Yield the rate of each table on two cores, and the memory of Java and of a Python worker.

    The first table's time includes the decoding of the log for all tables."""
    from quorate.quorum.analytics.spark.session import local_session
    from quorate.quorum.analytics.tables import TABLES, read_tables

    chosen = os.environ.get(TABLES_VARIABLE, "leadership")
    names = tuple(TABLES) if chosen == "all" else tuple(chosen.split(","))
    with local_session("benchmarks", java_options=JAVA_OPTIONS) as spark:
        whole_s = begin_s = descendants_cpu_s()
        tables = read_tables(spark, logs.directories(), only=names)
        for name in names:
            tables[name].write.format("noop").mode("overwrite").save()
            now_s = descendants_cpu_s()
            yield logs.rate(name, now_s - begin_s)
            begin_s = now_s
        yield logs.rate("these tables", begin_s - whole_s)
        for what, command in PROCESSES.items():
            peak_bytes = max(peaks(command), default=0)
            yield Figure(f"{logs}, memory of {what}", peak_bytes / MEBIBYTE, "MiB")


def peaks(command: bytes) -> Iterator[int]:
    """Yield the peak resident bytes of each process of Spark with this word in its command line."""
    for pid in descendants():
        directory = Path(f"/proc/{pid}")
        try:
            if command not in (directory / "cmdline").read_bytes():
                continue
            status = (directory / "status").read_text()
        except OSError:  # The process has just ended.
            continue
        for line in status.splitlines():
            if line.startswith("VmHWM:"):
                yield int(line.split()[1]) * 1024


def write_logs(logs: Logs) -> None:
    """Write the log of the first cluster, and give the file a second name for each other one. The
    first records create the topics, and the others repeat changes."""
    values = [encode_record(each) for each in islice(history(), 2 * REPEATED_RECORDS)]
    repeated = values[REPEATED_RECORDS:]
    first, *others = logs.directories()
    for directory in (first, *others):
        directory.mkdir(parents=True)
        cluster = directory.parent.name
        text = f"version=1\ncluster.id=cluster-{cluster}\nnode.id=1\n"
        (directory.parent / "meta.properties").write_text(text)
    with open(first / LOG_NAME, "wb") as file:
        for offset in range(0, logs.records, BATCH_RECORDS):
            source, at = (values, offset) if offset < REPEATED_RECORDS else (repeated, offset)
            at %= REPEATED_RECORDS
            batch = build_value_batch(
                source[at : at + min(BATCH_RECORDS, logs.records - offset)],
                base_offset=offset,
                leader_epoch=1,
                timestamp_ms=FIRST_TIMESTAMP_MS + offset,
            )
            file.write(batch)
    for directory in others:
        (directory / LOG_NAME).hardlink_to(first / LOG_NAME)


BENCHMARK = Benchmark("history_scale", offline=measure)

if __name__ == "__main__":
    run.main([BENCHMARK])
