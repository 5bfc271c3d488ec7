"""Building blocks of the tables: order, lifetimes and durations of the records that took effect.

Order is by offset and never by time, because the clock may step back from one controller to the
next. A duration that would be negative is then 0, and the table `warnings` names the step.

Every window, group and join has the key `cluster_id`, because the records may be of many clusters.
Windows are also partitioned by partition, broker or config, or cover only the few records of one
quorum. Nothing is collected to the driver, and no window holds the whole log.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as f

UNKNOWN = "unknown"
"""The cause of a change if the log does not name one."""
CLUSTER = "cluster_id"
TOPIC = (CLUSTER, "topic_id")
"""The columns that identify a topic."""
PARTITION = (CLUSTER, "topic_id", "partition_id")
"""The columns that identify a partition."""
LATEST = "latest_ms"
"""A column of logs that end with times which have not come yet: the latest possible time."""
SEQUENCE = ("offset", "snapshot_index")
"""The columns that order the rows."""
BUCKET = 1 << 16
"""The number of offsets of one cluster that one task sorts, if the order is that of the log."""
INTERVAL = (
    "start_offset", "start_time", "start_ms", "end_offset", "end_time", "end_ms", "duration_ms",
)  # fmt: skip
"""The columns of a half-open interval."""


def in_order(*keys: str) -> WindowSpec:
    """Return a window over the rows of one cluster with the same keys, in the order of the log."""
    return Window.partitionBy(*dict.fromkeys((CLUSTER, *keys))).orderBy(*SEQUENCE)


def up_to_now(*keys: str) -> WindowSpec:
    """Return a window from the first row with the same keys up to the current row."""
    return in_order(*keys).rowsBetween(Window.unboundedPreceding, Window.currentRow)


def with_latest(rows: DataFrame, latest_ms: Mapping[str, int]) -> DataFrame:
    """Add the column LATEST, from the result of `latest_times` for each cluster (`log/clocks.py`).

    It is null for most clusters. If no cluster has a latest time, return the rows unchanged."""
    if not latest_ms:
        return rows
    known = f.create_map(*(f.lit(each) for each in chain(*latest_ms.items())))
    return rows.withColumn(LATEST, known[f.col(CLUSTER)])


def as_of(records: DataFrame) -> DataFrame:
    """Return one row for each cluster, with the timestamp of its last record, `as_of_ms`, up to
    which unfinished intervals count. If this time has not come yet, it is the latest possible time.

    It is not the largest timestamp: one controller whose clock was fast would lengthen all
    unfinished intervals."""
    last = f.max_by("timestamp_ms", "offset")
    if LATEST in records.columns:
        last = f.least(last, f.max(LATEST))  # A null is no bound.
    return records.groupBy(CLUSTER).agg(last.alias("as_of_ms"))


def lifetimes(records: DataFrame) -> DataFrame:
    """Return one row per topic id, with its creation and its removal (null while the topic
    exists).

    If the record of the creation is missing, the topic's name and creation are null."""
    kind = f.col("type")
    created, removed = kind == "TOPIC_RECORD", kind == "REMOVE_TOPIC_RECORD"
    return (
        records.where(created | removed)
        .groupBy(*TOPIC)
        .agg(
            f.max(f.when(created, f.col("topic"))).alias("topic"),
            f.min(f.when(created, f.col("offset"))).alias("created_offset"),
            f.min(f.when(created, f.col("timestamp_ms"))).alias("created_ms"),
            f.max(f.when(removed, f.col("offset"))).alias("removed_offset"),
            f.max(f.when(removed, f.col("timestamp_ms"))).alias("removed_ms"),
        )
    )


def with_topic(rows: DataFrame, records: DataFrame) -> DataFrame:
    """Add the topic's name and its removal to each row."""
    known = lifetimes(records).drop("created_offset", "created_ms")
    return rows.drop("topic").join(known, list(TOPIC), "left")


def ended_by_removal(rows: DataFrame, records: DataFrame) -> DataFrame:
    """Add the topic's name, and end open intervals at the removal of the topic."""
    return (
        with_topic(rows, records)
        .withColumn("end_offset", f.coalesce("end_offset", "removed_offset"))
        .withColumn("end_ms", f.coalesce("end_ms", "removed_ms"))
        .drop("removed_offset", "removed_ms")
    )


def with_durations(rows: DataFrame, records: DataFrame) -> DataFrame:
    """Add `duration_ms` and the times of the interval.

    An open interval is measured up to the end of the log. A negative duration becomes 0."""
    until = f.coalesce("end_ms", "as_of_ms")
    return (
        rows.join(f.broadcast(as_of(records)), CLUSTER)
        .withColumn("duration_ms", f.greatest(until - f.col("start_ms"), f.lit(0)))
        .withColumn("start_time", instant("start_ms"))
        .withColumn("end_time", instant("end_ms"))
    )


def instant(milliseconds: str) -> Column:
    """Return a timestamp column from a column of ms since 1970."""
    return f.timestamp_millis(milliseconds)


def began(before: str) -> Column:
    """Return how the state at a row began: "changed", or for the first known state "snapshot" or
    "created".

    `before` is a column that is null in the first row of each partition."""
    first = f.when(f.col("snapshot_index").isNotNull(), "snapshot").otherwise("created")
    return f.when(f.col(before).isNotNull(), "changed").otherwise(first)


def same_members(one: Column, other: Column) -> Column:
    """Return a boolean column: True if two arrays have the same elements in any order."""
    return (f.size(f.array_except(one, other)) == 0) & (f.size(f.array_except(other, one)) == 0)
