"""The metrics of a broker's log directories and of the recompression of batches. The module is
imported at the first scrape."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import SummaryMetricFamily
from prometheus_client.metrics_core import Metric

from quorate.broker.logs.log_manager import LogManager
from quorate.broker.replication.recompressions import Recompressions
from quorate.quorum.watch.families import counter, gauge, gauges


def of_flushes(logs: LogManager) -> Iterator[Metric]:
    """Yield the number and the time of the flushes of partition logs, with Kafka's name."""
    yield SummaryMetricFamily(
        "kafka_log_logflushstats_logflushrateandtimems",
        "Time of a flush of a partition log, ms, with the wait for the disk's thread.",
        count_value=logs.flushes,
        sum_value=logs.flush_ms,
    )


def of_directories(logs: LogManager, unconfirmed: int) -> Iterator[Metric]:
    """Yield the state of the log directories, with Kafka's names, and the number of replicas whose
    directory the controller has not confirmed."""
    offline = logs.offline
    yield gauge(
        "kafka_log_logmanager_offlinelogdirectorycount",
        "Log directories that have failed.",
        len(offline),
    )
    yield gauges(
        "kafka_log_logmanager_logdirectoryoffline",
        "1 if the log directory has failed.",
        ("logDirectory",),
        [((path,), int(path in offline)) for path in logs.log_dirs],
    )
    yield gauge(
        "kafka_server_assignmentsmanager_queuedreplicatodirassignments",
        "Replicas whose log directory the controller has not confirmed.",
        unconfirmed,
    )


def of_recompressions(recompressions: Recompressions) -> Iterator[Metric]:
    """Yield the number of recompressed batches and the memory of those that wait."""
    yield counter(
        "quorate_recompressed_batches_total",
        "Batches that the leader rewrote with the codec of their topic (compression.type).",
        recompressions.batches,
    )
    yield gauge(
        "quorate_recompression_waiting_bytes",
        "Bytes of batches that wait for a recompression.",
        recompressions.waiting_bytes,
    )
