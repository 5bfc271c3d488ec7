"""The metrics of the log cleaner, with Kafka's names (kafka.log:type=LogCleaner and
LogCleanerManager)."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.metrics_core import Metric

from quorate.broker.logs.log_cleaner import LogCleaner
from quorate.broker.metrics import service_table


def of_cleaner(cleaner: LogCleaner) -> Iterator[Metric]:
    """Yield the metrics of the cleaner."""
    figures = cleaner.figures
    yield service_table.BUFFER_UTILIZATION.of(figures.buffer_utilization_percent)
    yield service_table.RECOPY_PERCENT.of(figures.recopy_percent)
    yield service_table.MAX_CLEAN_TIME.of(figures.clean_time_secs)
    yield service_table.MAX_COMPACTION_DELAY.of(figures.max_compaction_delay_secs)
    yield service_table.MAX_DIRTY_PERCENT.of(figures.max_dirty_percent)
    since_ms = cleaner.seams.clock.now_ms() - figures.last_run_ms
    yield service_table.TIME_SINCE_CLEANING.of(since_ms / 1000)
    logs = {
        path: [log for log in cleaner.uncleanable.values() if log.directory.startswith(f"{path}/")]
        for path in cleaner.logs.log_dirs
    }
    yield service_table.UNCLEANABLE_PARTITIONS.each(
        ((path,), len(of_directory)) for path, of_directory in logs.items()
    )
    yield service_table.UNCLEANABLE_BYTES.each(
        ((path,), sum(log.size_bytes for log in of_directory if not log.deleted))
        for path, of_directory in logs.items()
    )
    yield service_table.CLEANINGS.of(figures.cleanings)
    yield service_table.CLEANED_BYTES.of(figures.cleaned_bytes)
