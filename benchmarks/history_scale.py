"""The history of one cluster at several sizes: planning, one table in Spark, and one moment.

The cost for each record must not depend on the size of the log. Memory is the largest resident set
of a Python worker of Spark, and of this process for a moment.

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
from benchmarks.decode import BATCH_RECORDS, FIRST_TIMESTAMP_MS, JAVA_OPTIONS, LOG_NAME, history
from benchmarks.figure import Figure
from benchmarks.run import QUORATE, Benchmark, Options
from quorate.quorum.log.batches.batch import build_value_batch
from quorate.quorum.metadata.framing import encode_record
from quorate.quorum.metadata.snapshot import snapshot_records

SIZES = (1_000_000, 2_000_000, 4_000_000)
"""The records of the logs. QUORATE_HISTORY_SIZES, such as "10000000,100000000", replaces them."""
SIZES_VARIABLE = "QUORATE_HISTORY_SIZES"
NEAR_RECORDS = 1_000
REPEATED_RECORDS = 60_000
"""The log repeats the changes of this many records, so that a large log is written fast."""
MEBIBYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class Log:
    """A log of `records` records, with a snapshot near its end."""

    directory: Path
    records: int


def measure(system: str, _: Options) -> list[Figure]:
    """Return the figures of each size. Only Quorate has such tables."""
    if system != QUORATE:
        return []
    chosen = os.environ.get(SIZES_VARIABLE, "")
    sizes = tuple(int(each) for each in chosen.split(",")) if chosen else SIZES
    figures = []
    for records in sizes:
        with TemporaryDirectory(prefix="quorate-bench-") as root:
            log = Log(Path(root) / "__cluster_metadata-0", records)
            write_log(log)
            figures += [*planning(log), *a_moment(log)]
            if find_spec("pyspark") is not None:
                figures += a_table(log)
    return figures


def planning(log: Log) -> Iterator[Figure]:
    """Yield the rate of the first pass over the log, in one process."""
    from quorate.quorum.analytics.log.segments import log_slices

    begin_s = time.monotonic()
    log_slices(log.directory)
    yield rate(log, "first pass", time.monotonic() - begin_s)


def a_moment(log: Log) -> Iterator[Figure]:
    """Yield the time and memory of the cluster's state near a snapshot."""
    from quorate.quorum.analytics.replay.moment import moment

    end_offset = log.records - 2 * NEAR_RECORDS
    state = moment(log.directory, offset=end_offset - 1)
    epoch = state.epoch
    snapshot = log.directory / f"{end_offset:020d}-{epoch:010d}.checkpoint"
    values = [encode_record(each) for each in snapshot_records(state.image)]
    snapshot.write_bytes(
        build_value_batch(
            values, base_offset=0, leader_epoch=epoch, timestamp_ms=state.timestamp_ms
        )
    )
    begin_s = time.monotonic()
    moment(log.directory, offset=end_offset - 1 + NEAR_RECORDS)
    yield Figure(f"{named(log)}, one moment", (time.monotonic() - begin_s) * 1000, "ms")
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / MEBIBYTE
    yield Figure(f"{named(log)}, memory up to one moment", used, "MiB")


def a_table(log: Log) -> Iterator[Figure]:
    """Yield the rate of the table `leadership` on two cores, and the memory of a Python worker."""
    from quorate.quorum.analytics.spark.session import local_session
    from quorate.quorum.analytics.tables import read_tables

    with local_session("benchmarks", java_options=JAVA_OPTIONS) as spark:
        table = read_tables(spark, log.directory, only=("leadership",))["leadership"]
        begin_s = time.monotonic()
        table.write.format("noop").mode("overwrite").save()
        yield rate(log, "leadership", time.monotonic() - begin_s)
        worker_bytes = max(worker_peaks(), default=0)
        yield Figure(f"{named(log)}, memory of a worker", worker_bytes / MEBIBYTE, "MiB")


def worker_peaks() -> Iterator[int]:
    """Yield the peak resident bytes of each Python worker of Spark. Only Linux supports that."""
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            if b"pyspark.daemon" not in (directory / "cmdline").read_bytes():
                continue
            status = (directory / "status").read_text()
        except OSError:  # The process has just ended.
            continue
        for line in status.splitlines():
            if line.startswith("VmHWM:"):
                yield int(line.split()[1]) * 1024


def named(log: Log) -> str:
    """Return the beginning of the names of the log's figures."""
    return f"history of {log.records:,} records"


def rate(log: Log, what: str, taken_s: float) -> Figure:
    """Return the figure for handling all records in this time."""
    return Figure(f"{named(log)}, {what}", log.records / taken_s, "records/s", more_is_better=True)


def write_log(log: Log) -> None:
    """Write the log. Its first records create the topics, and the others repeat changes."""
    log.directory.mkdir()
    values = [encode_record(each) for each in islice(history(), 2 * REPEATED_RECORDS)]
    repeated = values[REPEATED_RECORDS:]
    with open(log.directory / LOG_NAME, "wb") as file:
        for offset in range(0, log.records, BATCH_RECORDS):
            source, at = (values, offset) if offset < REPEATED_RECORDS else (repeated, offset)
            at %= REPEATED_RECORDS
            batch = build_value_batch(
                source[at : at + min(BATCH_RECORDS, log.records - offset)],
                base_offset=offset,
                leader_epoch=1,
                timestamp_ms=FIRST_TIMESTAMP_MS + offset,
            )
            file.write(batch)


BENCHMARK = Benchmark("history_scale", offline=measure)

if __name__ == "__main__":
    run.main([BENCHMARK])
