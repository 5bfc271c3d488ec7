"""Metric families under the names that jmx_exporter gives Kafka's metrics, as users' dashboards
and alerts know them.

This module and those that make families import prometheus_client: they are imported at the first
scrape.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

Labelled = Iterable[tuple[Sequence[str], float]]


def gauge(name: str, help_: str, value: float) -> Metric:
    return GaugeMetricFamily(name, help_, value=value)


def counter(name: str, help_: str, value: float) -> Metric:
    """`name` ends with _total."""
    return CounterMetricFamily(name, help_, value=value)


def gauges(name: str, help_: str, labels: Sequence[str], values: Labelled) -> Metric:
    family = GaugeMetricFamily(name, help_, labels=labels)
    for each, value in values:
        family.add_metric(each, value)
    return family


def counters(name: str, help_: str, labels: Sequence[str], values: Labelled) -> Metric:
    family = CounterMetricFamily(name, help_, labels=labels)
    for each, value in values:
        family.add_metric(each, value)
    return family
