"""How long a partition could not be written: the gaps between its acknowledgements. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

GAP_S = 0.1
"""Shorter ones are the rhythm of batches."""


@dataclass(frozen=True, slots=True)
class Gap:
    partition: int
    start_s: float
    end_s: float

    @property
    def duration_ms(self) -> int:
        return round((self.end_s - self.start_s) * 1000)


class Gaps:
    """Told of every acknowledgement, in the order of time."""

    def __init__(self, partitions: int) -> None:
        self._last: list[float | None] = [None] * partitions
        self.found: list[Gap] = []

    def acknowledged(self, partition: int, now_s: float) -> None:
        last = self._last[partition]
        if last is not None and now_s - last > GAP_S:
            self.found.append(Gap(partition, last, now_s))
        self._last[partition] = now_s


def longest_around(
    gaps: Sequence[Gap], event_s: float, *, within_s: float = 15.0
) -> dict[int, int]:
    """Per partition, the longest gap (ms) in which the event lies or that began soon after it."""
    found: dict[int, int] = {}
    for gap in gaps:
        if gap.end_s >= event_s and gap.start_s <= event_s + within_s:
            found[gap.partition] = max(found.get(gap.partition, 0), gap.duration_ms)
    return found


def outage_text(longest: dict[int, int]) -> str:
    if not longest:
        return f"no partition stood still for more than {GAP_S * 1000:.0f} ms"
    by_length = sorted(longest.items(), key=lambda item: (-item[1], item[0]))
    return "could not be written: " + ", ".join(
        f"partition {partition} for {ms} ms" for partition, ms in by_length
    )
