"""The range of a log that may be cleaned, and the choice of the log that is cleaned next.

    0 ........ first dirty ............. first uncleanable ....... log end
      cleaned earlier   the dirty range     too young, or active

The first dirty offset comes from `cleaner-offset-checkpoint`. The first uncleanable offset is the
lowest of:

- the high watermark, because a record above it may be truncated (KAFKA-13194);
- the flushed offset, because a crash of the machine may take a record above it, and an earlier
  record of the same key must then still be there (Kafka has no such bound);
- the base of the active segment;
- the base of the first dirty segment with a record younger than min.compaction.lag.ms (KIP-58).

Only whole segments below that offset are cleaned.

A log is eligible if the share of its dirty bytes exceeds min.cleanable.dirty.ratio, or if a dirty
segment is older than max.compaction.lag.ms (KIP-354). The log with the highest share comes first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from quorate.broker.compaction.grouping import GroupedSegment
from quorate.quorum.log.segments.index import NO_TIMESTAMP

MAX_LAG_MS = 2**63 - 1
"""The value of max.compaction.lag.ms without effect."""


class CleanedSegment(GroupedSegment, Protocol):
    """The facts about a sealed segment that the rules need; `Segment` satisfies it."""

    @property
    def first_timestamp_ms(self) -> int:
        """The largest timestamp of the first batch, NO_TIMESTAMP if there is none."""

    @property
    def max_timestamp_ms(self) -> int:
        """The largest timestamp, NO_TIMESTAMP if there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionSettings:
    """The topic's settings of compaction, with Kafka's names and defaults. Times are in ms."""

    min_dirty_ratio: float = 0.5
    min_lag_ms: int = 0
    max_lag_ms: int = MAX_LAG_MS
    delete_retention_ms: int = 86_400_000


@dataclass(frozen=True, slots=True)
class Cleanable:
    """The range of a log that may be cleaned, with the bytes of the segments below and in it."""

    first_dirty: int
    first_uncleanable: int
    clean_bytes: int
    dirty_bytes: int
    overdue_ms: int
    """The time by which the oldest dirty segment exceeds max.compaction.lag.ms, 0 if none does."""
    checkpoint_is_valid: bool
    """False if the checkpoint lay outside of the log, so that the log start took its place."""

    @property
    def ratio(self) -> float:
        """The share of the dirty bytes, 0 if there are no bytes."""
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0

    def is_eligible(self, settings: CompactionSettings) -> bool:
        """Return True if the log is cleaned when its turn comes."""
        return self.dirty_bytes > 0 and (
            self.ratio > settings.min_dirty_ratio or self.overdue_ms > 0
        )


def cleanable(
    sealed: Sequence[CleanedSegment],
    settings: CompactionSettings,
    *,
    checkpoint: int | None,
    start_offset: int,
    end_offset: int,
    high_watermark: int,
    flushed_offset: int,
    active_base_offset: int,
    wall_ms: int,
) -> Cleanable:
    """Return the range of a log that may be cleaned.

    `checkpoint` is the offset of `cleaner-offset-checkpoint`, None if it has none. A timestamp of a
    segment is read only if a lag is set."""
    valid = checkpoint is None or start_offset <= checkpoint <= end_offset
    first_dirty = start_offset if checkpoint is None or not valid else checkpoint
    dirty = [each for each in sealed if each.next_offset > first_dirty]
    bound = min(high_watermark, flushed_offset, active_base_offset)
    if settings.min_lag_ms > 0:
        for each in dirty:
            if each.max_timestamp_ms > wall_ms - settings.min_lag_ms:
                bound = min(bound, each.base_offset)
                break
    first_uncleanable = max(first_dirty, bound)
    return Cleanable(
        first_dirty,
        first_uncleanable,
        sum(each.size for each in sealed if each.next_offset <= first_dirty),
        sum(each.size for each in dirty if each.next_offset <= first_uncleanable),
        _overdue_ms(dirty, settings, wall_ms),
        valid,
    )


def _overdue_ms(dirty: Sequence[CleanedSegment], settings: CompactionSettings, wall_ms: int) -> int:
    if settings.max_lag_ms == MAX_LAG_MS:
        return 0
    times = [each.first_timestamp_ms for each in dirty if each.first_timestamp_ms > NO_TIMESTAMP]
    return max(0, wall_ms - settings.max_lag_ms - min(times)) if times else 0
