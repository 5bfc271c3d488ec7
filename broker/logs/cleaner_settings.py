"""The settings of the log cleaner: the keys that begin with `log.cleaner.`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MAX_RATE = 1.7976931348623157e308


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanerSettings:
    """Kafka's keys of the log cleaner, with Kafka's defaults. Sizes are in bytes."""

    enabled: bool = True
    threads: int = 1
    """The number of logs that are compacted at the same time, in one thread."""
    backoff_ms: int = 15_000
    dedupe_buffer_bytes: int = 128 * 1024 * 1024
    load_factor: float = 0.9
    io_buffer_bytes: int = 512 * 1024
    io_max_bytes_per_second: float = MAX_RATE

    @classmethod
    def of(cls, node: Mapping[str, Any]) -> CleanerSettings:
        """Return the settings of a node's typed configuration. A missing key gives the default."""
        return cls(**{name: node[key] for name, key in _KEYS.items() if key in node})

    @property
    def map_bytes(self) -> int:
        """The memory of the map of one cleaning."""
        return self.dedupe_buffer_bytes // max(1, self.threads)

    @property
    def buffer_bytes(self) -> int:
        """The size of one read, and of one write, of one cleaning."""
        return max(1, self.io_buffer_bytes // max(1, self.threads) // 2)


_KEYS = {
    "enabled": "log.cleaner.enable",
    "threads": "log.cleaner.threads",
    "backoff_ms": "log.cleaner.backoff.ms",
    "dedupe_buffer_bytes": "log.cleaner.dedupe.buffer.size",
    "load_factor": "log.cleaner.io.buffer.load.factor",
    "io_buffer_bytes": "log.cleaner.io.buffer.size",
    "io_max_bytes_per_second": "log.cleaner.io.max.bytes.per.second",
}
