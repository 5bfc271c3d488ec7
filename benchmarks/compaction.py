"""The log cleaner: the rate at which it reads a log, and its delays of the event loop.

The log has records with a key of 12 bytes, one of 20,000 keys. The cleaning runs as on a broker: in
the disk's thread, one step after the other, with the pause of `cleaner_worker.py`. Rates are per
second of CPU time of that thread, and count each byte of the log once although two passes read it.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks import run
from benchmarks.figure import Figure, percentile
from benchmarks.run import QUORATE, Benchmark, Options
from quorate.broker.compaction.cleaning import Cleaning, CleaningPlan
from quorate.broker.compaction.log_cleaning import CleaningWork, clean_log, source_of
from quorate.broker.logs.cleaner_settings import CleanerSettings
from quorate.broker.logs.cleaner_worker import REST_MS
from quorate.quorum.log.batch import build_batch
from quorate.quorum.log.disk import OsDisk
from quorate.quorum.log.log import Log
from quorate.quorum.log.record import Record
from quorate.quorum.log.settings import LogSettings

KEYS = 20_000
BATCH_BYTES = 16 * 1024
LOG_BYTES = 32 << 20
SEGMENT_BYTES = 8 << 20
TICK_S = 0.001


def measure(system: str, options: Options) -> list[Figure]:
    """Return the figures, or none for a peer."""
    if system != QUORATE:
        return []
    figures = []
    for size in (100, 1000):
        with written(size) as log:
            rate = asyncio.run(cleaned(log))
        figures.append(
            Figure(f"compaction of {size} B records", rate[0], "MB/s", more_is_better=True)
        )
        figures.append(Figure(f"compaction of {size} B records, step p99", rate[1], "ms"))
        figures.append(Figure(f"tick p99 during compaction of {size} B records", rate[2], "ms"))
    figures.append(Figure("tick p99 without compaction", asyncio.run(idle(options.seconds)), "ms"))
    return figures


@contextmanager
def written(value_bytes: int) -> Iterator[Log]:
    """Yield a flushed log of LOG_BYTES in a temporary directory."""
    with TemporaryDirectory(prefix="quorate-bench-") as name:
        log = Log.open(
            OsDisk(),
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
            yield log
        finally:
            log.close()


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


async def cleaned(log: Log) -> tuple[float, float, float]:
    """Clean the log. Return the rate in MB per second of CPU, and the p99 of a step and of a tick's
    delay in ms."""
    cleaning, work = cleaning_of(log)
    bytes_ = sum(each.size for each in log.sealed_segments)
    steps: list[float] = []

    def timed(job: Callable[[], Any]) -> Any:
        began = time.thread_time()
        try:
            return job()
        finally:
            steps.append(time.thread_time() - began)

    delays: list[float] = []
    ticker = asyncio.create_task(tick(delays))
    loop, result = asyncio.get_running_loop(), None
    with ThreadPoolExecutor(1) as thread:
        try:
            while True:
                job = work.send(result)
                result = await loop.run_in_executor(thread, timed, job)
                await asyncio.sleep(REST_MS / 1000)
        except StopIteration:
            pass
    ticker.cancel()
    assert cleaning.stats.keys > KEYS // 2
    return (
        bytes_ / sum(steps) / 1e6,
        1000 * percentile(steps, 0.99),
        1000 * percentile(delays, 0.99),
    )


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
