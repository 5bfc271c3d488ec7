"""The latencies of a run: p50, p99 and maximum before, during and after the faults. Pure.

A latency belongs to the phase in which it ended. A write lasts from the first sending of its batch
until the acknowledgement, with all repetitions. A read lasts from the acknowledgement of a batch
until the consumer has read it. A change of metadata lasts until it is committed."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

BOUNDS_MS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000)
"""The upper bounds of the bars of a histogram, which include the bound. The last bar has none."""
KINDS = ("write", "read", "metadata")


@dataclass(slots=True)
class Samples:
    """Latencies with the times at which they ended, in s on the monotonic clock, in that order."""

    ended_s: array[float] = field(default_factory=lambda: array("d"))
    took_s: array[float] = field(default_factory=lambda: array("d"))

    def add(self, began_s: float, ended_s: float) -> None:
        """Add a latency. `ended_s` must not be before that of the last one."""
        self.ended_s.append(ended_s)
        self.took_s.append(ended_s - began_s)

    def clear(self) -> None:
        """Remove all."""
        del self.ended_s[:], self.took_s[:]


@dataclass(frozen=True, slots=True)
class Latencies:
    """The latencies of one kind, in ms since the start of the run, by the times of their ends."""

    ended_ms: Sequence[int] = ()
    took_ms: Sequence[int] = ()

    def between(self, start_ms: int, end_ms: int) -> list[int]:
        """Return the latencies that ended from `start_ms` on and before `end_ms`, in ascending
        order."""
        first, after = bisect_left(self.ended_ms, start_ms), bisect_left(self.ended_ms, end_ms)
        return sorted(self.took_ms[first:after])


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The number of latencies, some percentiles, and the histogram by BOUNDS_MS."""

    count: int
    p50: int
    p99: int
    max: int
    bars: tuple[int, ...]


def summary(ascending: Sequence[int]) -> Summary:
    """Return the summary of latencies in ascending order. Without any, all numbers are 0."""
    bars = [0] * (len(BOUNDS_MS) + 1)
    for each in ascending:
        bars[bisect_left(BOUNDS_MS, each)] += 1
    return Summary(
        count=len(ascending),
        p50=percentile(ascending, 50),
        p99=percentile(ascending, 99),
        max=ascending[-1] if ascending else 0,
        bars=tuple(bars),
    )


def percentile(ascending: Sequence[int], percent: int) -> int:
    """Return the smallest value that at least `percent` % of the values do not exceed, or 0."""
    rank = -(-len(ascending) * percent // 100)
    return ascending[max(0, rank - 1)] if ascending else 0


def lines(found: Iterable[tuple[str, dict[str, Summary]]]) -> Iterator[str]:
    """Yield a line of text for each kind of latency that has any: p50, p99 and maximum."""
    for kind, phases in found:
        if any(each.count for each in phases.values()):
            shown = "   ".join(
                f"{name} {each.p50:,} / {each.p99:,} / {each.max:,}"
                for name, each in phases.items()
                if each.count
            )
            yield f"{kind} latency, p50 / p99 / max ms: {shown}"


def bar_name(number: int) -> str:
    """Return the name of a bar of a histogram."""
    if number == len(BOUNDS_MS):
        return f"> {BOUNDS_MS[-1]:,} ms"
    return f"<= {BOUNDS_MS[number]:,} ms"
