"""The table `reassignment_steps`: how long a reassignment waited for each new replica."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from quorate.quorum.analytics.tables.events import CLUSTER, TOPIC, as_of, instant
from quorate.quorum.analytics.tables.reassignments import reassignments
from quorate.quorum.analytics.tables.replica_runs import IN, replica_runs

REASSIGNMENT = (*TOPIC, "partition", "start_offset")
"""The columns that identify a reassignment."""


def reassignment_steps(records: DataFrame) -> DataFrame:
    """One row per replica that a reassignment adds. The reassignment cannot complete before all of
    them are in the ISR, so the slowest one caused its duration.

    cluster_id     string
    topic          string
    topic_id       string
    partition      int
    start_offset   bigint     that of the reassignment, as in `reassignments`
    start_ms       bigint
    broker         int        the broker of the new replica
    joined_offset  bigint     its entry into the ISR; null if it never entered
    joined_time    timestamp
    joined_ms      bigint
    wait_ms        bigint     from the beginning until its entry, or until the end
    slowest        boolean    true if no other replica of the reassignment took longer
    ended          string     that of the reassignment; null while it lasts
    """
    steps = reassignments(records).withColumn("broker", f.explode("adding_replicas"))
    runs = (
        replica_runs(records)
        .where(f.col("state") == IN)
        .select(
            *TOPIC,
            f.col("partition_id").alias("partition"),
            "broker",
            f.col("offset").alias("in_offset"),
            f.col("timestamp_ms").alias("in_ms"),
            f.col("next_offset").alias("out_offset"),
        )
    )
    same = [*TOPIC, "partition", "broker"]
    during = (f.col("out_offset").isNull() | (f.col("out_offset") > f.col("start_offset"))) & (
        f.col("end_offset").isNull() | (f.col("in_offset") <= f.col("end_offset"))
    )
    first = (
        steps.join(runs, same)
        .where(during)
        .groupBy(*REASSIGNMENT, "broker")
        .agg(f.min("in_offset").alias("in_offset"), f.min_by("in_ms", "in_offset").alias("in_ms"))
    )
    later = f.col("in_offset") >= f.col("start_offset")
    until = f.coalesce("joined_ms", "end_ms", "as_of_ms")
    slowest = f.max("wait_ms").over(Window.partitionBy(*REASSIGNMENT))
    return (
        steps.join(first, [*REASSIGNMENT, "broker"], "left")
        .join(f.broadcast(as_of(records)), CLUSTER)
        .withColumn("joined_offset", f.greatest("in_offset", f.when(~later, f.col("start_offset"))))
        .withColumn("joined_ms", f.when(later, f.col("in_ms")))
        .withColumn("joined_ms", f.when(~later, f.col("start_ms")).otherwise(f.col("joined_ms")))
        .withColumn("wait_ms", f.greatest(until - f.col("start_ms"), f.lit(0)))
        .select(
            CLUSTER,
            "topic",
            "topic_id",
            "partition",
            "start_offset",
            "start_ms",
            "broker",
            "joined_offset",
            instant("joined_ms").alias("joined_time"),
            "joined_ms",
            "wait_ms",
            (f.col("wait_ms") == slowest).alias("slowest"),
            "ended",
        )
    )
