"""The gaps between the acknowledgements of a partition, during which it could not be written.

The module is pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

GAP_S = 0.1
"""Shorter gaps are the normal interval between batches."""


@dataclass(frozen=True, slots=True)
class Gap:
    """An interval in which a partition acknowledged nothing, in s on the monotonic clock."""

    partition: int
    start_s: float
    end_s: float

    @property
    def duration_ms(self) -> int:
        """Return the length of the gap in ms."""
        return round((self.end_s - self.start_s) * 1000)


class Gaps:
    """The gaps of all partitions, in `found`. Acknowledgements must be reported in time order.

    A gap is longer than GAP_S, and begins and ends with an acknowledgement. An outage that
    has not ended is therefore not in `found`."""

    def __init__(self, partitions: int) -> None:
        self._last: list[float | None] = [None] * partitions
        self.found: list[Gap] = []

    def acknowledged(self, partition: int, now_s: float) -> None:
        """Record an acknowledgement at `now_s`."""
        last = self._last[partition]
        if last is not None and now_s - last > GAP_S:
            self.found.append(Gap(partition, last, now_s))
        self._last[partition] = now_s


def longest_around(
    gaps: Sequence[Gap], event_s: float, *, within_s: float = 15.0
) -> dict[int, int]:
    """Return the longest gap of each partition near an event, in ms.

    A gap is near if it contains the event or starts at most `within_s` after it."""
    found: dict[int, int] = {}
    for gap in gaps:
        if gap.end_s >= event_s and gap.start_s <= event_s + within_s:
            found[gap.partition] = max(found.get(gap.partition, 0), gap.duration_ms)
    return found


def outage_text(longest: dict[int, int]) -> str:
    """Return the longest gaps as text, the longest one first."""
    if not longest:
        return f"no partition waited for more than {GAP_S * 1000:.0f} ms"
    by_length = sorted(longest.items(), key=lambda item: (-item[1], item[0]))
    return "could not be written: " + ", ".join(
        f"partition {partition} for {ms} ms" for partition, ms in by_length
    )
