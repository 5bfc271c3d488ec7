"""The part of a history that a report shows: a range of time, some topics, some brokers."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from quorate.quorum.analytics.log.text import clock

BEFORE = "before"
"""The value of `began` for a spell that began before the range."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """A half-open range of time, in ms since 1970, and the topics and brokers to show.

    None and () mean no restriction. A partition is shown if one of the brokers ever had a replica
    of it."""

    from_ms: int | None = None
    to_ms: int | None = None
    topics: tuple[str, ...] = ()
    brokers: tuple[int, ...] = ()

    def text(self) -> str:
        """Return the restrictions for people, or "" if there are none."""
        parts = []
        if self.from_ms is not None:
            parts.append(f"from {clock(self.from_ms)}")
        if self.to_ms is not None:
            parts.append(f"to {clock(self.to_ms)}")
        if self.topics:
            parts.append(f"topics {', '.join(self.topics)}")
        if self.brokers:
            parts.append(f"brokers {', '.join(map(str, self.brokers))}")
        return ", ".join(parts)

    def partitions(self, rows: DataFrame, states: DataFrame) -> DataFrame:
        """Return the rows of a table about partitions that are in the scope.

        `states` has the replicas of every partition at every change."""
        if self.topics:
            rows = rows.where(f.col("topic").isin(*self.topics))
        if self.brokers:
            wanted = f.array(*map(f.lit, self.brokers)).cast("array<int>")
            hosted = states.where(f.arrays_overlap("replicas", wanted)).select(
                "topic_id", f.col("partition_id").alias("partition")
            )
            rows = rows.join(hosted.distinct(), ["topic_id", "partition"], "left_semi")
        return rows

    def of_brokers(self, rows: DataFrame) -> DataFrame:
        """Return the rows of a table with a column `broker` that are in the scope."""
        return rows.where(f.col("broker").isin(*self.brokers)) if self.brokers else rows

    def clipped(self, spells: DataFrame) -> DataFrame:
        """Return the intervals that overlap the range, cut at its ends.

        An interval that goes on after the range is open. If the table has a column `began`, it is
        BEFORE for an interval that began before the range."""
        start, end = f.col("start_ms"), f.col("end_ms")
        until = f.coalesce(end, start + f.col("duration_ms"))
        if self.from_ms is not None:
            spells = spells.where((until > self.from_ms) | (start >= self.from_ms))
        if self.to_ms is not None:
            spells = spells.where(start < self.to_ms)
        first, last = self._later(start), self._earlier(until)
        changed = {"start_ms": first, "duration_ms": f.greatest(last - first, f.lit(0))}
        if self.to_ms is not None:
            changed["end_ms"] = f.when(end <= self.to_ms, end)
        if self.from_ms is not None and "began" in spells.columns:
            began = f.when(start < self.from_ms, BEFORE).otherwise(f.col("began"))
            changed["began"] = began
        return spells.withColumns(changed)

    def _later(self, at_ms: Column) -> Column:
        return at_ms if self.from_ms is None else f.greatest(at_ms, f.lit(self.from_ms))

    def _earlier(self, at_ms: Column) -> Column:
        return at_ms if self.to_ms is None else f.least(at_ms, f.lit(self.to_ms))
