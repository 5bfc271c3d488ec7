"""Declarations of metrics, and the families that a scrape makes of them.

Metrics are declared in modules that contain nothing else: `watch/metric_table.py`,
`node/controller_metric_table.py`, and the two tables of `broker/metrics`. `make docs` writes
docs/metrics.md from these tables. A metric that Kafka also has is named as jmx_exporter names
Kafka's, in lower case, because existing dashboards and alerts use these names. Names follow the
rules of `promtool check metrics`, so times are in seconds.

This module and its importers import prometheus_client, so the node imports them only at the first
scrape.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from types import ModuleType

from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
    SummaryMetricFamily,
)

from quorate.quorum.histogram import BOUNDS_US, Histogram

Labelled = Iterable[tuple[Sequence[str], float]]
US_PER_S = 1_000_000
BOUNDS = (*(str(each / US_PER_S) for each in BOUNDS_US), "+Inf")
"""The label `le` of each bucket of a histogram, in seconds."""


@dataclass(frozen=True, slots=True)
class Declaration:
    """The name, the help text and the labels of one metric. `kind` is its type in Prometheus."""

    name: str
    help: str
    labels: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """Return the type of the metric: gauge, counter, summary or histogram."""
        return type(self).__name__.lower()


class Gauge(Declaration):
    """A value that may rise and fall."""

    def of(self, value: float) -> Metric:
        """Return the family without labels."""
        return self.each([((), value)])

    def each(self, values: Labelled) -> Metric:
        """Return the family with one sample for each (label values, value)."""
        family = GaugeMetricFamily(self.name, self.help, labels=self.labels)
        for each, value in values:
            family.add_metric(each, value)
        return family


class Counter(Declaration):
    """A count that only rises. Its name ends with _total."""

    def of(self, value: float) -> Metric:
        """Return the family without labels."""
        return self.each([((), value)])

    def each(self, values: Labelled) -> Metric:
        """Return the family with one sample for each (label values, value)."""
        family = CounterMetricFamily(self.name, self.help, labels=self.labels)
        for each, value in values:
            family.add_metric(each, value)
        return family


class Summary(Declaration):
    """A number of events and the sum of their values."""

    def each(self, values: Iterable[tuple[Sequence[str], int, float]]) -> Metric:
        """Return the family with the samples of each (label values, count, sum)."""
        family = SummaryMetricFamily(self.name, self.help, labels=self.labels)
        for each, count, total in values:
            family.add_metric(each, count, total)
        return family


class Durations(Declaration):
    """A histogram of durations in seconds."""

    @property
    def kind(self) -> str:
        """Return the type of the metric."""
        return "histogram"

    def of(self, histogram: Histogram) -> Metric:
        """Return the family without labels."""
        return self.each([((), histogram)])

    def each(self, histograms: Iterable[tuple[Sequence[str], Histogram]]) -> Metric:
        """Return the family with the samples of each (label values, histogram)."""
        family = HistogramMetricFamily(self.name, self.help, labels=self.labels)
        for each, histogram in histograms:
            buckets = list(zip(BOUNDS, accumulate(histogram.counts), strict=True))
            family.add_metric(each, buckets, histogram.sum_us / US_PER_S)
        return family


def declared(table: ModuleType) -> Iterator[Declaration]:
    """Yield the metrics that a table declares, in their order."""
    return (each for each in vars(table).values() if isinstance(each, Declaration))
