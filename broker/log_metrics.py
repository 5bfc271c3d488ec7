"""The metrics of a broker's log directory and of the recompression of batches. The module is
imported at the first scrape."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import SummaryMetricFamily
from prometheus_client.metrics_core import Metric

from quorate.broker.logs.log_flusher import LogFlusher
from quorate.broker.replication.recompressions import Recompressions
from quorate.quorum.watch.families import counter, gauge


def of_flushes(flusher: LogFlusher) -> Iterator[Metric]:
    """Yield the number and the time of the flushes of partition logs, with Kafka's name."""
    yield SummaryMetricFamily(
        "kafka_log_logflushstats_logflushrateandtimems",
        "Time of a flush of a partition log, ms, with the wait for the disk's thread.",
        count_value=flusher.flushes,
        sum_value=flusher.flush_ms,
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
