"""The metrics of client quotas: the rate and the throttle time of each client that has one.

The names and labels are those of Kafka's sensors. A label is empty if clients with all its values
share the quota.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from prometheus_client.metrics_core import Metric

from quorate.quorum.quotas.client_rates import ClientRates
from quorate.quorum.watch.families import counters, gauges

CLIENT = ("user", "client_id")


def throttles(totals: Sequence[tuple[str, int, int]]) -> Iterator[Metric]:
    """Yield the totals of some quotas, given as (key, throttled requests, sum of the throttle times
    in ms)."""
    yield counters(
        "quorate_quota_throttled_total",
        "Requests, or new connections, that were throttled.",
        ("quota",),
        (((key,), count) for key, count, _ in totals),
    )
    yield counters(
        "quorate_quota_throttle_time_ms_total",
        "The sum of the throttle times.",
        ("quota",),
        (((key,), total_ms) for key, _, total_ms in totals),
    )


def clients(rates: ClientRates, prefix: str, measure: str, now_ms: int) -> Iterator[Metric]:
    """Yield the rate and the average throttle time of each tracked client. `prefix` begins the
    names, and `measure` names the rate."""
    buckets = list(rates.buckets())
    yield gauges(
        prefix + measure,
        f"The use that {rates.key} bounds.",
        CLIENT,
        ((client, each.rate.measure(now_ms)[0]) for client, each in buckets),
    )
    yield gauges(
        f"{prefix}throttle_time",
        f"The average throttle time under {rates.key}, ms.",
        CLIENT,
        (
            (client, each.throttles.average(now_ms))
            for client, each in buckets
            if each.throttles is not None
        ),
    )
