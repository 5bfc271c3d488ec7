"""Decoding a metadata log to rows: CPU time on one core, and in Spark on two if PySpark is
installed.

No cluster is needed. The peer decodes the same file with kafka-dump-log. Without Java or Kafka's
jars, the only reference is the time for reading the file and computing its checksums.

Spark is warm, as in a long job. The best of several passes counts, because other processes may use
the machine. Spark's CPU time is that of the JVM and of its Python workers.
"""

from __future__ import annotations

import os
import resource
import subprocess
import time
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import count, islice
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import kafka_cluster, run
from benchmarks.figure import Figure
from benchmarks.run import QUORATE, Benchmark, Options
from quorate.quorum.ids import Uuid
from quorate.quorum.log.batches.batch import batches, build_value_batch
from quorate.quorum.metadata.framing import encode_record
from quorate.quorum.metadata.records import (
    ConfigRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    TopicRecord,
)

LOG_NAME = "00000000000000000000.log"
RECORDS = 600_000
TOPICS = 20
PARTITIONS = 50
BATCH_RECORDS = 8
"""The number of records in a batch."""
FIRST_TIMESTAMP_MS = 1_700_000_000_000
PASSES = 8
"""The number of passes, of which the best one counts."""
JAVA_OPTIONS = "-XX:+UseSerialGC"


def measure(system: str, _: Options) -> list[Figure]:
    """Return the figures of Quorate or of the peer. A peer without Java has none."""
    with TemporaryDirectory(prefix="quorate-bench-") as root:
        directory = Path(root) / "__cluster_metadata-0"
        directory.mkdir()
        write_log(directory / LOG_NAME)
        if system != QUORATE:
            taken = dump_log(directory / LOG_NAME)
            if taken is None:
                return []
            taken_s, cpu_s = taken
            return [
                rate("of CPU time", cpu_s),
                rate("Spark", taken_s),
                rate("Spark, of CPU time", cpu_s),
            ]
        raw_s = min(raw_pass(directory / LOG_NAME) for _ in range(PASSES))
        figures = [
            rate("of CPU time", min(rows_in_process(directory) for _ in range(PASSES))),
            rate("only read and checked", raw_s),
        ]
        if find_spec("pyspark") is not None:
            taken_s, cpu_s = rows_in_spark(directory)
            figures += [rate("Spark", taken_s), rate("Spark, of CPU time", cpu_s)]
        return figures


def rate(where: str, taken_s: float) -> Figure:
    """Return the figure for decoding all records in this time."""
    return Figure(f"decode, {where}", RECORDS / taken_s, "records/s", more_is_better=True)


def raw_pass(file: Path) -> float:
    """Return the CPU time for reading the batches and comparing their checksums, in seconds."""
    begin_s = time.process_time()
    complete(sum(header.record_count for _, header in batches(file.read_bytes())))
    return time.process_time() - begin_s


def rows_in_process(directory: Path) -> float:
    """Return the CPU time for decoding the log in this process, in seconds."""
    from quorate.quorum.analytics.log.segments import log_slices
    from quorate.quorum.analytics.spark.rows import Request, arrow_batches

    begin_s = time.process_time()
    found = sum(
        batch.num_rows
        for piece in log_slices(directory)
        for batch in arrow_batches(piece, Request(with_json=False))
    )
    complete(found)
    return time.process_time() - begin_s


def rows_in_spark(directory: Path) -> tuple[float, float]:
    """Return (seconds, CPU seconds) for computing every column without storing the result.

    Each is the least of several passes, not necessarily of the same one."""
    from quorate.quorum.analytics.spark.session import local_session
    from quorate.quorum.analytics.spark.source import NAME

    with local_session("benchmarks", java_options=JAVA_OPTIONS) as spark:
        frame = spark.read.format(NAME).option("json", "false").load(str(directory))
        taken, cpu = [], []
        for _ in range(PASSES):
            begin_s, begin_cpu_s = time.monotonic(), descendants_cpu_s()
            frame.write.format("noop").mode("overwrite").save()
            taken.append(time.monotonic() - begin_s)
            cpu.append(descendants_cpu_s() - begin_cpu_s)
        complete(frame.count())
        return min(taken), min(cpu)


def descendants_cpu_s() -> float:
    """Return the CPU time of all descendants of this process in seconds.

    It includes those that ended, if a descendant has waited for them."""
    return sum(descendants().values()) / os.sysconf("SC_CLK_TCK")


def descendants() -> dict[int, int]:
    """Return the clock ticks of CPU time of each descendant of this process, by process id.

    Only Linux supports that."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # The process has just ended.
            continue
        parents[int(stat.parent.name)] = int(fields[1]), sum(map(int, fields[11:15]))
    found: dict[int, int] = {}
    level = {os.getpid()}
    while level:
        level = {pid for pid, (parent, _) in parents.items() if parent in level}
        found |= {pid: parents[pid][1] for pid in level}
    return found


def complete(found: int) -> None:
    """Raise RuntimeError unless all records were found."""
    if found != RECORDS:
        raise RuntimeError(f"{found} rows of {RECORDS} records")


def dump_log(file: Path) -> tuple[float, float] | None:
    """Return (seconds, CPU seconds) of kafka-dump-log, or None if Kafka cannot run here."""
    jars = kafka_cluster.libs()
    if jars is None:
        return None
    dump = ("kafka.tools.DumpLogSegments", "--cluster-metadata-decoder", "--files", str(file))
    begin_s, begin_cpu_s = time.monotonic(), children_cpu_s()
    subprocess.run(
        ("java", "-cp", f"{jars}/*", *dump), check=True, stdout=subprocess.DEVNULL, timeout=300
    )
    return time.monotonic() - begin_s, children_cpu_s() - begin_cpu_s


def children_cpu_s() -> float:
    """Return the CPU time in seconds of the children that this process has waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def write_log(file: Path) -> None:
    """Write a metadata log of RECORDS records to the file."""
    values = islice(map(encode_record, history()), RECORDS)
    with open(file, "wb") as log:
        for offset in range(0, RECORDS, BATCH_RECORDS):
            batch = build_value_batch(
                list(islice(values, BATCH_RECORDS)),
                base_offset=offset,
                leader_epoch=1,
                timestamp_ms=FIRST_TIMESTAMP_MS + offset,
            )
            log.write(batch)


def history() -> Iterator[MetadataRecord]:
    """Yield records without end: first topics, then changes of leaders, ISRs and configs."""
    topic_ids = [Uuid(bytes([number + 1] * 16)) for number in range(TOPICS)]
    for number, topic_id in enumerate(topic_ids):
        yield TopicRecord(name=f"topic-{number}", topic_id=topic_id)
        for index in range(PARTITIONS):
            yield PartitionRecord(
                partition_id=index,
                topic_id=topic_id,
                replicas=(1, 2, 3),
                isr=(1, 2, 3),
                leader=1 + index % 3,
                leader_epoch=0,
                partition_epoch=0,
                cause="topic-created",
            )
    for number in count():
        topic_id, index = topic_ids[number % TOPICS], number % PARTITIONS
        yield ConfigRecord(
            resource_type=2,
            resource_name=f"topic-{number % TOPICS}",
            name="retention.ms",
            value=str(number),
        )
        yield PartitionChangeRecord(
            partition_id=index, topic_id=topic_id, isr=(1, 2), leader=2, cause="session-expired"
        )
        yield PartitionChangeRecord(
            partition_id=index, topic_id=topic_id, isr=(1, 2, 3), cause="isr-expand"
        )


BENCHMARK = Benchmark("decode", offline=measure)

if __name__ == "__main__":
    run.main([BENCHMARK])
