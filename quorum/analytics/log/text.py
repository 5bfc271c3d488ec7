"""Words for resource types, times and durations, for the tables, the stories and the page."""

from __future__ import annotations

from datetime import UTC, datetime

RESOURCES = {
    2: "topic",
    4: "broker",
    8: "broker-logger",
    16: "client-metrics",
    32: "group",
}
"""Names of Kafka's ConfigResource types, by number."""


def clock(at_ms: int) -> str:
    """Return the time in UTC, such as "2026-11-22 19:53:00.123", from ms since 1970."""
    moment = datetime.fromtimestamp(at_ms / 1000, UTC)
    return f"{moment:%Y-%m-%d %H:%M:%S}.{at_ms % 1000:03d}"


def span(duration_ms: int) -> str:
    """Return a duration in its two largest units, such as "3 min 4 s", from ms.

    Below a minute it is "3.14 s" or "250 ms"."""
    if duration_ms < 1_000:
        return f"{duration_ms} ms"
    seconds = duration_ms / 1000
    if seconds < 60:
        return f"{seconds:.3g} s"
    minutes, seconds = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {seconds} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours < 48 else f"{hours // 24} d {hours % 24} h"
