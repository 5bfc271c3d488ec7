"""The metrics of client quotas: the rate and the throttle time of each client that has one.

The names and labels are those of Kafka's sensors. A label is empty if clients with all its values
share the quota.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import nsmallest

from prometheus_client.metrics_core import Metric

from quorate.quorum.quotas.client_rates import ClientRates
from quorate.quorum.watch.declaration import Gauge


def client_metrics(
    rates: ClientRates, rate: Gauge, throttle_time: Gauge, now_ms: int, bound: int
) -> Iterator[Metric]:
    """Yield the rate and the average throttle time of at most `bound` tracked clients, the first
    ones by name, so that the choice is stable."""
    buckets = nsmallest(bound, rates.buckets(), key=lambda each: each[0])
    yield rate.each((client, each.rate.measure(now_ms)[0]) for client, each in buckets)
    yield throttle_time.each(
        (client, each.throttles.average(now_ms))
        for client, each in buckets
        if each.throttles is not None
    )
