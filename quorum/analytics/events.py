"""What the tables are made of: orders, lifetimes and durations over the records that took effect.

Order is by offset, never by time: clocks of controllers may step back from one epoch to the next
(durations are then taken as zero). Windows run per partition, per broker, per config or over the
few records of the quorum, so nothing is collected to the driver and no window holds the whole log.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as f

UNKNOWN = "unknown"
PARTITION = ("topic_id", "partition_id")
SEQUENCE = ("offset", "snapshot_index")
INTERVAL = (
    "start_offset", "start_time", "start_ms", "end_offset", "end_time", "end_ms", "duration_ms",
)  # fmt: skip


def in_order(*keys: str) -> WindowSpec:
    return Window.partitionBy(*keys).orderBy(*SEQUENCE)


def up_to_now(*keys: str) -> WindowSpec:
    return in_order(*keys).rowsBetween(Window.unboundedPreceding, Window.currentRow)


def as_of(records: DataFrame) -> DataFrame:
    """One row: when the log ends. What is still going on is measured up to it."""
    return records.agg(f.max("timestamp_ms").alias("as_of_ms"))


def lifetimes(records: DataFrame) -> DataFrame:
    """One row per topic that ever was: when it came, and when it went (null: it lives)."""
    kind = f.col("type")
    created, removed = kind == "TOPIC_RECORD", kind == "REMOVE_TOPIC_RECORD"
    return (
        records.where(created | removed)
        .groupBy("topic_id")
        .agg(
            f.max(f.when(created, f.col("topic"))).alias("topic"),
            f.min(f.when(created, f.col("offset"))).alias("created_offset"),
            f.min(f.when(created, f.col("timestamp_ms"))).alias("created_ms"),
            f.max(f.when(removed, f.col("offset"))).alias("removed_offset"),
            f.max(f.when(removed, f.col("timestamp_ms"))).alias("removed_ms"),
        )
    )


def with_topic(rows: DataFrame, records: DataFrame) -> DataFrame:
    """Add the topic's name and its removal."""
    known = lifetimes(records).drop("created_offset", "created_ms")
    return rows.drop("topic").join(f.broadcast(known), "topic_id", "left")


def ended_by_removal(rows: DataFrame, records: DataFrame) -> DataFrame:
    """Add the topic's name, and close with its removal what has no end yet."""
    return (
        with_topic(rows, records)
        .withColumn("end_offset", f.coalesce("end_offset", "removed_offset"))
        .withColumn("end_ms", f.coalesce("end_ms", "removed_ms"))
        .drop("removed_offset", "removed_ms")
    )


def with_durations(rows: DataFrame, records: DataFrame) -> DataFrame:
    """From `start_ms` to `end_ms`, or to the end of the log for what is still going on."""
    until = f.coalesce("end_ms", "as_of_ms")
    return (
        rows.crossJoin(f.broadcast(as_of(records)))
        .withColumn("duration_ms", f.greatest(until - f.col("start_ms"), f.lit(0)))
        .withColumn("start_time", instant("start_ms"))
        .withColumn("end_time", instant("end_ms"))
    )


def instant(milliseconds: str) -> Column:
    return f.timestamp_millis(milliseconds)


def same_members(one: Column, other: Column) -> Column:
    """Of two arrays, in whatever order."""
    return (f.size(f.array_except(one, other)) == 0) & (f.size(f.array_except(other, one)) == 0)
