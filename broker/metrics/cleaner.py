"""The metrics of the log cleaner, with Kafka's names (kafka.log:type=LogCleaner and
LogCleanerManager)."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.metrics_core import Metric

from quorate.broker.logs.log_cleaner import LogCleaner
from quorate.broker.metrics import table


def of_cleaner(cleaner: LogCleaner) -> Iterator[Metric]:
    """Yield the metrics of the cleaner."""
    figures = cleaner.figures
    yield table.BUFFER_UTILIZATION.of(figures.buffer_utilization_percent)
    yield table.RECOPY_PERCENT.of(figures.recopy_percent)
    yield table.MAX_CLEAN_TIME.of(figures.clean_time_secs)
    yield table.MAX_COMPACTION_DELAY.of(figures.max_compaction_delay_secs)
    yield table.MAX_DIRTY_PERCENT.of(figures.max_dirty_percent)
    since_ms = cleaner.seams.clock.now_ms() - figures.last_run_ms
    yield table.TIME_SINCE_CLEANING.of(since_ms / 1000)
    logs = {
        path: [log for log in cleaner.uncleanable.values() if log.directory.startswith(f"{path}/")]
        for path in cleaner.logs.log_dirs
    }
    yield table.UNCLEANABLE_PARTITIONS.each(
        ((path,), len(of_directory)) for path, of_directory in logs.items()
    )
    yield table.UNCLEANABLE_BYTES.each(
        ((path,), sum(log.size_bytes for log in of_directory if not log.deleted))
        for path, of_directory in logs.items()
    )
    yield table.CLEANINGS.of(figures.cleanings)
    yield table.CLEANED_BYTES.of(figures.cleaned_bytes)
