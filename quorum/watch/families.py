"""Metric families under the names that jmx_exporter gives Kafka's metrics.

Existing dashboards and alerts use these names. This module and its importers import
prometheus_client, so the node imports them only at the first scrape.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

Labelled = Iterable[tuple[Sequence[str], float]]


def gauge(name: str, help_: str, value: float) -> Metric:
    """Return a gauge without labels."""
    return GaugeMetricFamily(name, help_, value=value)


def counter(name: str, help_: str, value: float) -> Metric:
    """Return a counter without labels. `name` ends with _total."""
    return CounterMetricFamily(name, help_, value=value)


def gauges(name: str, help_: str, labels: Sequence[str], values: Labelled) -> Metric:
    """Return a gauge with labels, with one sample for each (label values, value)."""
    family = GaugeMetricFamily(name, help_, labels=labels)
    for each, value in values:
        family.add_metric(each, value)
    return family


def counters(name: str, help_: str, labels: Sequence[str], values: Labelled) -> Metric:
    """Return a counter with labels, with one sample for each (label values, value)."""
    family = CounterMetricFamily(name, help_, labels=labels)
    for each, value in values:
        family.add_metric(each, value)
    return family
