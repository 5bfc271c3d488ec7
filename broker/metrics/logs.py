"""The metrics of a broker's log directories and of the recompression of batches."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.metrics_core import Metric

from quorate.broker.kafka.admin.describe_log_dirs import volume_bytes
from quorate.broker.logs.log_manager import LogManager
from quorate.broker.metrics import service_table
from quorate.broker.replication.appends.recompressions import Recompressions
from quorate.quorum.histogram import US_PER_MS


def of_flushes(logs: LogManager) -> Iterator[Metric]:
    """Yield the number and the time of the flushes of partition logs, with Kafka's name."""
    times = logs.flush_times
    yield service_table.FLUSHES.each([((), times.count, times.sum_us / US_PER_MS)])
    yield service_table.FLUSH_TIME.of(times)


def of_directories(logs: LogManager, unconfirmed: int) -> Iterator[Metric]:
    """Yield the state of the log directories, with Kafka's names, and the number of replicas whose
    directory the controller has not confirmed."""
    offline = logs.offline
    yield service_table.OFFLINE_DIRECTORIES.of(len(offline))
    yield service_table.DIRECTORY_OFFLINE.each(((path,), path in offline) for path in logs.log_dirs)
    volumes = {path: volume_bytes(path) for path in logs.log_dirs if path not in offline}
    known = {path: volume for path, volume in volumes.items() if volume[0] >= 0}
    yield service_table.DIRECTORY_SIZE.each(((path,), size) for path, (size, _) in known.items())
    yield service_table.DIRECTORY_FREE.each(((path,), free) for path, (_, free) in known.items())
    yield service_table.UNCONFIRMED_DIRECTORIES.of(unconfirmed)


def of_recompressions(recompressions: Recompressions) -> Iterator[Metric]:
    """Yield the number of recompressed batches and the memory of those that wait."""
    yield service_table.RECOMPRESSED_BATCHES.of(recompressions.batches)
    yield service_table.RECOMPRESSION_BYTES.of(recompressions.waiting_bytes)
