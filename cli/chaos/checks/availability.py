"""The times at which a client was served, and those at which it waited. Pure.

Times are in ms since the start of the run, unless a name says otherwise."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Outage:
    """An interval, in ms since the start, in which a partition was not available."""

    partition: int
    start_ms: int
    end_ms: int

    @property
    def duration_ms(self) -> int:
        """Return the length of the interval."""
        return self.end_ms - self.start_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class Availability:
    """The batches of one workload that were served, and the times at which it waited."""

    done: Mapping[int, Sequence[int]] = field(default_factory=dict)
    """The times of the served batches by partition, in ascending order."""
    outages: Sequence[Outage] = ()

    @property
    def known(self) -> bool:
        """Return True if the client was served or waited. Otherwise nothing is known, as in a run
        that could not start, and numbers of 0 mean nothing."""
        return bool(self.outages) or any(self.done.values())

    def longest_ms(self) -> int:
        """Return the length of the longest outage, or 0."""
        return max((each.duration_ms for each in self.outages), default=0)

    def count(self, start_ms: int, end_ms: int) -> int:
        """Return the number of batches from `start_ms` on and before `end_ms`."""
        return sum(
            bisect_left(times, end_ms) - bisect_left(times, start_ms)
            for times in self.done.values()
        )

    def idle(self, start_ms: int, end_ms: int) -> list[int]:
        """Return the partitions without a batch in the interval, which includes both ends."""
        return [
            partition
            for partition, times in sorted(self.done.items())
            if bisect_right(times, end_ms) == bisect_left(times, start_ms)
        ]
