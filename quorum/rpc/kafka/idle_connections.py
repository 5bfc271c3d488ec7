"""The rule that closes idle client connections (`connections.max.idle.ms`).

A connection is idle if no request waits for its response and `max_idle_ms` have passed since its
last request or response. A connection that waits for a response is never idle.

`connection_quotas.py` checks all its connections with one timer. An idle connection is therefore
closed up to a tenth of `max_idle_ms` later.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Protocol

CHECKS_PER_IDLE_TIME = 10
MIN_CHECK_INTERVAL_MS = 10


class UsedConnection(Protocol):
    """A connection, as the idle rule uses it."""

    @property
    def used_ms(self) -> int:
        """Return the time of its last request or response, or of its start."""

    @property
    def has_requests(self) -> bool:
        """Return True if a request of the connection waits for its response."""

    def close_with(self, reason: str, level: int) -> None:
        """Close the connection and log the reason."""


def close_idle(connections: Iterable[UsedConnection], max_idle_ms: int, now_ms: int) -> int:
    """Close the idle ones of `connections`. Return the time in ms until the next check.

    The next check is due when the next connection may become idle, but not earlier than a tenth of
    `max_idle_ms` from now, so that frequent checks do not take the CPU."""
    next_ms = max_idle_ms
    for connection in connections:
        if connection.has_requests:
            continue
        left_ms = connection.used_ms + max_idle_ms - now_ms
        if left_ms > 0:
            next_ms = min(next_ms, left_ms)
        else:
            connection.close_with(f"idle for {max_idle_ms} ms", logging.INFO)
    return max(next_ms, MIN_CHECK_INTERVAL_MS, max_idle_ms // CHECKS_PER_IDLE_TIME)
