"""The bound of the cleaner's I/O, log.cleaner.io.max.bytes.per.second (Kafka's Throttler).

Bytes read and bytes written count, those of all threads together. Every CHECK_INTERVAL_MS, or when
the bytes of that time were moved, the cleaner compares them with the bound, and pauses for the time
that it is ahead. Time in which the cleaner was idle does not count, so that a burst after it is
throttled too. In Kafka it counts.
"""

from __future__ import annotations

CHECK_INTERVAL_MS = 300


class IoThrottle:
    """The bytes since the last check. The event loop owns it. `now_ms` is the monotonic time."""

    def __init__(self, max_bytes_per_second: float, now_ms: int) -> None:
        self.max_bytes_per_second = max_bytes_per_second
        self._began_ms = now_ms
        self._seen_ms = now_ms
        self._bytes = 0

    def pause_ms(self, moved_bytes: int, now_ms: int) -> int:
        """Count bytes that were read or written. Return the ms for which the cleaner must pause,
        usually 0."""
        if now_ms - self._seen_ms > CHECK_INTERVAL_MS:  # idle time gives no credit
            self._began_ms, self._bytes = now_ms, 0
        self._seen_ms = now_ms
        self._bytes += moved_bytes
        elapsed_ms = now_ms - self._began_ms
        due_ms = int(self._bytes * 1000 / self.max_bytes_per_second)
        if max(elapsed_ms, due_ms) < CHECK_INTERVAL_MS:
            return 0
        pause_ms = max(0, due_ms - elapsed_ms)
        self._began_ms = self._seen_ms = now_ms + pause_ms
        self._bytes = 0
        return pause_ms
