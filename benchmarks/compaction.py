"""The log cleaner: the rate at which it reads a log, and its delays of the event loop.

The log has records with a key of 12 bytes, one of 20,000 keys. The cleaning runs as on a broker: in
a thread of its own, one piece after the other, with the pause of `cleaner_worker.py`. Rates are per
second of CPU time of that thread, and count each byte of the log once although two passes read it.

The peer is Apache Kafka's `Cleaner` on copies of the same log (`KafkaCleaner.java`). A JVM compiles
its code while it runs. Therefore the first copy has a figure of its own, and the rate is that of
the best of KAFKA_COPIES.
"""

from __future__ import annotations

import asyncio
import random
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks import kafka_cluster, run
from benchmarks.figure import Figure, percentile
from benchmarks.kafka_cluster import JVM_OPTIONS
from benchmarks.run import LOCAL_KAFKA, QUORATE, Benchmark, Options
from quorate.broker.compaction.cleaning import Cleaning, CleaningPlan
from quorate.broker.compaction.log_cleaning import CleaningWork, clean_log, source_of
from quorate.broker.logs.cleaner_settings import CleanerSettings
from quorate.broker.logs.cleaner_worker import REST_MS
from quorate.quorum.log.batches.batch import build_batch
from quorate.quorum.log.batches.record import Record
from quorate.quorum.log.disks.disk import OsDisk
from quorate.quorum.log.files.settings import LogSettings
from quorate.quorum.log.log import Log

SIZES = (100, 1000)
"""The bytes of a value."""
KAFKA_CLEANER = Path(__file__).with_name("KafkaCleaner.java")
KAFKA_COPIES = 6
KEYS = 20_000
BATCH_BYTES = 16 * 1024
LOG_BYTES = 32 << 20
SEGMENT_BYTES = 8 << 20
TICK_S = 0.001


def measure(system: str, options: Options) -> list[Figure]:
    """Return the figures. Apache Kafka has rates only, and a cluster that already runs has none."""
    if system != QUORATE:
        return of_kafka() if system == LOCAL_KAFKA else []
    figures = []
    for size in SIZES:
        with written(size) as (log, disk):
            rate = asyncio.run(cleaned(log, disk))
        figures += rates(size, rate[0], rate[0])
        figures.append(Figure(f"compaction of {size} B records, step p99", rate[1], "ms"))
        figures.append(Figure(f"tick p99 during compaction of {size} B records", rate[2], "ms"))
    figures.append(Figure("tick p99 without compaction", asyncio.run(idle(options.seconds)), "ms"))
    return figures


def rates(record_bytes: int, best: float, first: float) -> list[Figure]:
    """Return the figures of two rates in MB per second of CPU."""
    name = f"compaction of {record_bytes} B records"
    return [
        Figure(name, best, "MB/s", more_is_better=True),
        Figure(f"{name}, first log of a process", first, "MB/s", more_is_better=True),
    ]


def of_kafka() -> list[Figure]:
    """Return the rates of Apache Kafka's cleaner on the same logs."""
    figures = []
    for size in SIZES:
        with written(size) as (log, _), TemporaryDirectory(prefix="kafka-cleaner-") as root:
            names = [str(Path(root) / str(each) / "t-0") for each in range(KAFKA_COPIES)]
            for name in names:
                shutil.copytree(log.directory, name)
            done = subprocess.run(
                [
                    *("java", *JVM_OPTIONS, f"-Dsegment.bytes={SEGMENT_BYTES}"),
                    *("-cp", f"{kafka_cluster.libs()}/*", str(KAFKA_CLEANER), *names),
                ],
                capture_output=True,
                text=True,
                check=True,
            )
            bytes_ = sum(each.size for each in log.sealed_segments)
        found = [bytes_ / int(line.split()[0]) * 1000 for line in done.stdout.splitlines()]
        figures += rates(size, max(found), found[0])
    return figures


@contextmanager
def written(value_bytes: int) -> Iterator[tuple[Log, TimedDisk]]:
    """Yield a flushed log of LOG_BYTES in a temporary directory, and its disk."""
    disk = TimedDisk()
    with TemporaryDirectory(prefix="quorate-bench-") as name:
        log = Log.open(
            disk,
            str(Path(name) / "t-0"),
            LogSettings(segment_bytes=SEGMENT_BYTES),
            wall_ms=0,
            clean=False,
        )
        rand = random.Random(1)
        value, count = rand.randbytes(value_bytes), max(1, BATCH_BYTES // value_bytes)
        while log.size_bytes < LOG_BYTES:
            base = log.end_offset
            records = [
                Record(base + each, 1_000, b"key-%08d" % rand.randrange(KEYS), value)
                for each in range(count)
            ]
            log.append(build_batch(records, leader_epoch=0), wall_ms=0)
        log.flush()
        try:
            yield log, disk
        finally:
            log.close()
            disk.close()


def cleaning_of(log: Log) -> tuple[Cleaning, CleaningWork[int]]:
    """Return the cleaning of all sealed segments, and its work."""
    settings, segments = CleanerSettings(), log.sealed_segments
    plan = CleaningPlan(
        directory=log.directory,
        index_interval_bytes=log.settings.index_interval_bytes,
        dirty=tuple(source_of(each) for each in segments),
        first_dirty=0,
        now_ms=1,
        delete_retention_ms=1,
        map_bytes=settings.map_bytes,
        load_factor=settings.load_factor,
        buffer_bytes=settings.buffer_bytes,
        epoch_of=log.epochs_now(),
        last_batches={},
    )
    cleaning = Cleaning(log.disk, plan)
    return cleaning, clean_log(
        log, cleaning, segments, (None for _ in ()), lambda: False, lambda paths: None
    )


class TimedDisk(OsDisk):
    """A disk that notes the CPU time of each step of long work, and that of all work, in s."""

    def __init__(self) -> None:
        super().__init__()
        self.steps_s: list[float] = []
        self.cpu_s = 0.0
        self._step_began_s = 0.0

    def timed(self, job: Callable[[], Any]) -> Any:
        """Do the work of one piece, in the thread of long work."""
        began_s = self._step_began_s = time.thread_time()
        try:
            return job()
        finally:
            self.cpu_s += time.thread_time() - began_s

    def rest(self) -> bool:
        """Note the step that has ended, and rest."""
        self.steps_s.append(time.thread_time() - self._step_began_s)
        ends = super().rest()
        self._step_began_s = time.thread_time()
        return ends


async def cleaned(log: Log, disk: TimedDisk) -> tuple[float, float, float]:
    """Clean the log. Return the rate in MB per second of CPU, and the p99 of a step and of a tick's
    delay in ms."""
    cleaning, work = cleaning_of(log)
    bytes_ = sum(each.size for each in log.sealed_segments)
    delays: list[float] = []
    ticker = asyncio.create_task(tick(delays))
    loop, result = asyncio.get_running_loop(), None
    try:
        while True:
            piece: asyncio.Future[Any] = loop.create_future()
            disk.submit_long(partial(disk.timed, work.send(result)), partial(answer, piece))
            result = await piece
            await asyncio.sleep(REST_MS / 1000)
    except StopIteration:
        pass
    ticker.cancel()
    assert cleaning.stats.keys > KEYS // 2
    return (
        bytes_ / disk.cpu_s / 1e6,
        1000 * percentile(disk.steps_s, 0.99),
        1000 * percentile(delays, 0.99),
    )


def answer(piece: asyncio.Future[Any], result: object, error: BaseException | None) -> None:
    """Take the outcome of a piece of work."""
    if error is None:
        piece.set_result(result)
    else:
        piece.set_exception(error)


async def idle(seconds: float) -> float:
    """Return the p99 of the delay of a tick in ms while nothing else runs."""
    delays: list[float] = []
    ticker = asyncio.create_task(tick(delays))
    await asyncio.sleep(seconds)
    ticker.cancel()
    return 1000 * percentile(delays, 0.99)


async def tick(delays: list[float]) -> None:
    """Sleep TICK_S again and again, and note by how much each sleep was too long, in s."""
    while True:
        began = time.perf_counter()
        await asyncio.sleep(TICK_S)
        delays.append(time.perf_counter() - began - TICK_S)


BENCHMARK = Benchmark("compaction", offline=measure)

if __name__ == "__main__":
    run.main([BENCHMARK])
