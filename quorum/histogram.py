"""Histograms of durations, cheap enough for every request.

One observation is a binary search over a few bounds and two additions, and allocates no container.
The number of buckets is fixed. All histograms of durations have the same bounds, so that they can
be added up and compared. `watch/declaration.py` turns them into metrics.
"""

from __future__ import annotations

from bisect import bisect_left

BOUNDS_US = (
    100,
    250,
    500,
    1_000,
    2_500,
    5_000,
    10_000,
    25_000,
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    30_000_000,
)
"""The upper bounds of the buckets in us, inclusive. The last bucket has no upper bound."""
US_PER_MS = 1000


class Histogram:
    """The durations of one kind of event, owned by one thread.

    `counts` holds the events of each bucket, not of the buckets below it. `sum_us` is the sum of
    the durations."""

    __slots__ = ("counts", "sum_us")

    def __init__(self) -> None:
        """Create a histogram without events."""
        self.counts = [0] * (len(BOUNDS_US) + 1)
        self.sum_us = 0

    @property
    def count(self) -> int:
        """Return the number of events."""
        return sum(self.counts)

    def observe(self, duration_us: int) -> None:
        """Count one event of `duration_us`."""
        self.counts[bisect_left(BOUNDS_US, duration_us)] += 1
        self.sum_us += duration_us

    def add(self, other: Histogram) -> None:
        """Add the events of another histogram to this one."""
        self.counts = [mine + its for mine, its in zip(self.counts, other.counts, strict=True)]
        self.sum_us += other.sum_us
