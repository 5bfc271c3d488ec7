"""The metrics of a broker's log directories and of the recompression of batches."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.metrics_core import Metric

from quorate.broker.logs.log_manager import LogManager
from quorate.broker.metrics import table
from quorate.broker.replication.recompressions import Recompressions


def of_flushes(logs: LogManager) -> Iterator[Metric]:
    """Yield the number and the time of the flushes of partition logs, with Kafka's name."""
    yield table.FLUSHES.each([((), logs.flushes, logs.flush_ms)])


def of_directories(logs: LogManager, unconfirmed: int) -> Iterator[Metric]:
    """Yield the state of the log directories, with Kafka's names, and the number of replicas whose
    directory the controller has not confirmed."""
    offline = logs.offline
    yield table.OFFLINE_DIRECTORIES.of(len(offline))
    yield table.DIRECTORY_OFFLINE.each(((path,), path in offline) for path in logs.log_dirs)
    yield table.UNCONFIRMED_DIRECTORIES.of(unconfirmed)


def of_recompressions(recompressions: Recompressions) -> Iterator[Metric]:
    """Yield the number of recompressed batches and the memory of those that wait."""
    yield table.RECOMPRESSED_BATCHES.of(recompressions.batches)
    yield table.RECOMPRESSION_BYTES.of(recompressions.waiting_bytes)
