"""The table `quorum_health`: how long the cluster had no active controller between two epochs."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from quorate.quorum.analytics.tables.events import CLUSTER, as_of, instant
from quorate.quorum.analytics.tables.quorum import LEADER_CHANGE


def quorum_health(records: DataFrame) -> DataFrame:
    """One row per epoch of the quorum that has records in the log. Between the last record of one
    epoch and the first of the next, the cluster may have had no active controller.

    cluster_id      string
    epoch           int
    leader          int        null if the log does not contain its election
    voters          int        how many; null if the log does not contain the election
    records         bigint     records of the epoch that took effect
    start_offset    bigint     the first record of the epoch
    start_time      timestamp
    start_ms        bigint
    last_offset     bigint     the last record of the epoch
    last_ms         bigint
    duration_ms     bigint     until the next epoch begins, or until the end of the log
    skipped_epochs  int        epochs before it in which no controller became active; null at first
    gap_ms          bigint     at most this long without an active controller before it
    """
    elected = f.col("type") == LEADER_CHANGE
    epochs = (
        records.where(f.col("snapshot_index").isNull())
        .groupBy(CLUSTER, "epoch")
        .agg(
            f.max(f.when(elected, f.col("controller_id"))).alias("leader"),
            f.max(f.when(elected, f.size("voters"))).alias("voters"),
            f.count("*").alias("records"),
            f.min("offset").alias("start_offset"),
            f.min_by("timestamp_ms", "offset").alias("start_ms"),
            f.max("offset").alias("last_offset"),
            f.max_by("timestamp_ms", "offset").alias("last_ms"),
        )
    )
    # One row per epoch: there are few.
    order = Window.partitionBy(CLUSTER).orderBy("start_offset")
    until = f.coalesce(f.lead("start_ms").over(order), f.col("as_of_ms"))
    return (
        epochs.join(f.broadcast(as_of(records)), CLUSTER)
        .withColumn("duration_ms", f.greatest(until - f.col("start_ms"), f.lit(0)))
        .withColumn("skipped_epochs", f.col("epoch") - f.lag("epoch").over(order) - 1)
        .withColumn(
            "gap_ms", f.greatest(f.col("start_ms") - f.lag("last_ms").over(order), f.lit(0))
        )
        .withColumn("gap_ms", f.when(f.col("skipped_epochs").isNotNull(), f.col("gap_ms")))
        .select(
            CLUSTER, "epoch", "leader", "voters", "records", "start_offset",
            instant("start_ms").alias("start_time"), "start_ms", "last_offset", "last_ms",
            "duration_ms", "skipped_epochs", "gap_ms",
        )
    )  # fmt: skip
