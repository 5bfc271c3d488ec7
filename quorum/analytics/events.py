"""What the tables are made of: the log's rows in order, narrowed to what took effect.

Order is by offset, never by time: clocks of controllers may step back from one epoch to the next
(durations are then taken as zero). Windows run per partition, per broker or over the few markers of
transactions, so nothing is collected to the driver and no window holds the whole log.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as f

MARKERS = ("BEGIN_TRANSACTION_RECORD", "END_TRANSACTION_RECORD", "ABORT_TRANSACTION_RECORD")
UNKNOWN = "unknown"
PARTITION = ("topic_id", "partition_id")
SEQUENCE = ("offset", "snapshot_index")


def in_order(*keys: str) -> WindowSpec:
    return Window.partitionBy(*keys).orderBy(*SEQUENCE)


def up_to_now(*keys: str) -> WindowSpec:
    return in_order(*keys).rowsBetween(Window.unboundedPreceding, Window.currentRow)


def effective(log: DataFrame) -> DataFrame:
    """Without the records of metadata transactions that were aborted or never ended (KIP-868)."""
    markers = log.where(f.col("type").isin(*MARKERS)).select("type", "offset")
    following = Window.partitionBy(f.lit(0)).orderBy("offset")
    dropped = (
        markers.withColumn("ended", f.lead("type").over(following))
        .withColumn("end_offset", f.lead("offset").over(following))
        .where(
            (f.col("type") == MARKERS[0])
            & f.coalesce(f.col("ended") != f.lit(MARKERS[1]), f.lit(True))
        )
        .select(f.col("offset").alias("begin_offset"), "end_offset")
    )
    inside = (f.col("offset") > f.col("begin_offset")) & (
        f.col("end_offset").isNull() | (f.col("offset") < f.col("end_offset"))
    )
    return log.join(f.broadcast(dropped), inside, "left_anti")


def as_of(log: DataFrame) -> DataFrame:
    """One row: when the log ends. What is still going on is measured up to it."""
    return log.agg(f.max("timestamp_ms").alias("as_of_ms"))


def lifetimes(log: DataFrame) -> DataFrame:
    """One row per topic that ever was: when it came, and when it went (null: it lives)."""
    kind = f.col("type")
    created, removed = kind == "TOPIC_RECORD", kind == "REMOVE_TOPIC_RECORD"
    return (
        log.where(created | removed)
        .groupBy("topic_id")
        .agg(
            f.max(f.when(created, f.col("topic"))).alias("topic"),
            f.min(f.when(created, f.col("offset"))).alias("created_offset"),
            f.max(f.when(removed, f.col("offset"))).alias("removed_offset"),
            f.max(f.when(removed, f.col("timestamp_ms"))).alias("removed_ms"),
        )
    )


def partition_states(log: DataFrame) -> DataFrame:
    """Every partition record with the whole state after it, and whether it named a leader."""
    now = up_to_now(*PARTITION)
    whole = f.col("type") == "PARTITION_RECORD"
    generation = up_to_now(*PARTITION, "generation")
    named = f.col("leader").isNotNull()
    changes = log.where(f.col("type").isin("PARTITION_RECORD", "PARTITION_CHANGE_RECORD"))
    filled = {name: f.last(name, ignorenulls=True).over(now) for name in ("isr", "replicas")}
    return (
        changes.withColumn("generation", f.sum(whole.cast("int")).over(now))
        .withColumn("named", named)
        .withColumn(
            "leader_epoch",
            f.first("leader_epoch").over(generation)
            + f.sum((named & ~whole).cast("int")).over(generation),
        )
        .withColumn("leader", f.last("leader", ignorenulls=True).over(now))
        .withColumns(filled)
        .withColumn("cause", f.coalesce("cause", f.lit(UNKNOWN)))
    )


def ended_by_removal(rows: DataFrame, log: DataFrame) -> DataFrame:
    """Add the topic's name, and close with its removal what has no end yet."""
    named = rows.drop("topic").join(f.broadcast(lifetimes(log)), "topic_id", "left")
    return (
        named.withColumn("end_offset", f.coalesce("end_offset", "removed_offset"))
        .withColumn("end_ms", f.coalesce("end_ms", "removed_ms"))
        .drop("created_offset", "removed_offset", "removed_ms")
    )


def with_durations(rows: DataFrame, log: DataFrame) -> DataFrame:
    """From `start_ms` to `end_ms`, or to the end of the log for what is still going on."""
    until = f.coalesce("end_ms", "as_of_ms")
    return (
        rows.crossJoin(f.broadcast(as_of(log)))
        .withColumn("duration_ms", f.greatest(until - f.col("start_ms"), f.lit(0)))
        .withColumn("start_time", instant("start_ms"))
        .withColumn("end_time", instant("end_ms"))
    )


def instant(milliseconds: str) -> Column:
    return f.timestamp_millis(milliseconds)
