"""The metrics of the log cleaner, with Kafka's names (kafka.log:type=LogCleaner and
LogCleanerManager). The module is imported at the first scrape."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client.metrics_core import Metric

from quorate.broker.logs.cleaner_figures import CleanerFigures
from quorate.broker.logs.log_cleaner import LogCleaner
from quorate.quorum.watch.families import counter, gauge, gauges

CLEANER = "kafka_log_logcleaner_"
MANAGER = "kafka_log_logcleanermanager_"
DIRECTORY = ("logDirectory",)
FIGURES: tuple[tuple[str, str, Callable[[CleanerFigures], int]], ...] = (
    (
        f"{CLEANER}max_buffer_utilization_percent",
        "Share of the map of offsets that the last cleaning used.",
        lambda each: each.buffer_utilization_percent,
    ),
    (
        f"{CLEANER}cleaner_recopy_percent",
        "Bytes written for each 100 bytes that the last cleaning read.",
        lambda each: each.recopy_percent,
    ),
    (
        f"{CLEANER}max_clean_time_secs",
        "Duration of the last cleaning in seconds.",
        lambda each: each.clean_time_secs,
    ),
    (
        f"{CLEANER}max_compaction_delay_secs",
        "Longest time by which a log exceeds max.compaction.lag.ms, in seconds.",
        lambda each: each.max_compaction_delay_secs,
    ),
    (
        f"{MANAGER}max_dirty_percent",
        "Highest share of dirty bytes of all compacted logs.",
        lambda each: each.max_dirty_percent,
    ),
)


def of_cleaner(cleaner: LogCleaner) -> Iterator[Metric]:
    """Yield the metrics of the cleaner. All are gauges but the last two."""
    figures = cleaner.figures
    for name, text, value in FIGURES:
        yield gauge(name, text, value(figures))
    yield gauge(
        f"{MANAGER}time_since_last_run_ms",
        "Time since the end of the last cleaning, or since the start.",
        cleaner.seams.clock.now_ms() - figures.last_run_ms,
    )
    logs = {
        path: [log for log in cleaner.uncleanable.values() if log.directory.startswith(f"{path}/")]
        for path in cleaner.logs.log_dirs
    }
    yield gauges(
        f"{MANAGER}uncleanable_partitions_count",
        "Logs that are not compacted because they are damaged.",
        DIRECTORY,
        [((path,), len(of_directory)) for path, of_directory in logs.items()],
    )
    yield gauges(
        f"{MANAGER}uncleanable_partitions_bytes",
        "Bytes of these logs.",
        DIRECTORY,
        [
            ((path,), sum(log.size_bytes for log in of_directory if not log.deleted))
            for path, of_directory in logs.items()
        ],
    )
    yield counter("quorate_log_cleaner_cleanings_total", "Cleanings of one log.", figures.cleanings)
    yield counter(
        "quorate_log_cleaner_read_bytes_total",
        "Bytes that cleanings have read.",
        figures.cleaned_bytes,
    )
