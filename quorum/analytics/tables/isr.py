"""The tables `isr` and `elr`: changes of each partition's ISR and eligible leader replicas
(KIP-966).
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from quorate.quorum.analytics.tables.events import (
    PARTITION,
    SEQUENCE,
    in_order,
    lifetimes,
    same_members,
    up_to_now,
    with_topic,
)
from quorate.quorum.analytics.tables.partition_states import partition_states

MIN_ISR = "min.insync.replicas"
TOPIC_RESOURCE, BROKER_RESOURCE = 2, 4


def isr(records: DataFrame) -> DataFrame:
    """One row per change of an ISR, with a comparison of its size with min.insync.replicas. The
    first known ISR counts as a change. A change of min.insync.replicas alone gives no row. The
    setting is that of the topic, or else the brokers' cluster-wide default, or else 1. Settings of
    single brokers and in their files are not considered.

    topic               string
    topic_id            string
    partition           int
    offset              bigint
    time                timestamp
    timestamp_ms        bigint
    leader              int
    isr                 array<int>
    added               array<int>
    removed             array<int>
    size                int
    replication_factor  int
    min_isr             int         the setting at this time, at most the replication factor
    below_min           boolean
    cause               string
    """
    changes = (
        partition_states(records)
        .withColumn("before", f.lag("isr").over(in_order(*PARTITION)))
        .withColumn("before", f.coalesce("before", f.array().cast("array<int>")))
        .withColumn("added", f.array_except("isr", "before"))
        .withColumn("removed", f.array_except("before", "isr"))
        .where((f.size("added") > 0) | (f.size("removed") > 0))
        .drop("topic", "name", "value")
    )
    governed = _min_isr_settings(records).unionByName(changes, allowMissingColumns=True)
    wanted = f.coalesce(_last_setting("topic_min_isr"), _last_setting("cluster_min_isr"), f.lit(1))
    return (
        governed.withColumn("wanted", wanted)
        .where(f.col("isr").isNotNull())
        .withColumn("min_isr", f.least("wanted", f.size("replicas")))
        .withColumn("size", f.size("isr"))
        .withColumn("below_min", f.col("size") < f.col("min_isr"))
        .join(f.broadcast(lifetimes(records)), "topic_id", "left")
        .select(
            "topic",
            "topic_id",
            f.col("partition_id").alias("partition"),
            "offset",
            f.col("timestamp").alias("time"),
            "timestamp_ms",
            "leader",
            "isr",
            "added",
            "removed",
            "size",
            f.size("replicas").alias("replication_factor"),
            "min_isr",
            "below_min",
            "cause",
        )
    )


def _last_setting(name: str) -> Column:
    """Return the setting that is in force at this row, or null. A value of -1 means that it was
    unset."""
    value = f.last(name, ignorenulls=True).over(up_to_now("topic_id"))
    return f.when(value >= 0, value)


def _min_isr_settings(records: DataFrame) -> DataFrame:
    """Return the changes of min.insync.replicas, one row per topic that a change applies to."""
    value = f.coalesce(f.col("value").cast("int"), f.lit(-1))
    first_in_snapshot = f.when(f.col("snapshot_index").isNotNull(), -1).alias("snapshot_index")
    settings = records.where(
        (f.col("type") == "CONFIG_RECORD") & (f.col("name") == MIN_ISR)
    ).select("offset", first_in_snapshot, "resource_type", "resource_name", value.alias("setting"))
    own = (f.col("resource_type") == TOPIC_RESOURCE) & (f.col("resource_name") == f.col("topic"))
    general = (f.col("resource_type") == BROKER_RESOURCE) & (f.col("resource_name") == "")
    lived = (f.col("offset") >= f.col("created_offset")) & (
        f.col("removed_offset").isNull() | (f.col("offset") < f.col("removed_offset"))
    )
    return settings.join(f.broadcast(lifetimes(records)), (own & lived) | general).select(
        *SEQUENCE,
        "topic_id",
        f.when(own, f.col("setting")).alias("topic_min_isr"),
        f.when(general, f.col("setting")).alias("cluster_min_isr"),
    )


def elr(records: DataFrame) -> DataFrame:
    """One row per change of the eligible leader replicas, which may lead without data loss although
    they are not in the ISR, or of the last known ones.

    topic           string
    topic_id        string
    partition       int
    offset          bigint
    time            timestamp
    timestamp_ms    bigint
    elr             array<int>
    added           array<int>
    removed         array<int>
    last_known_elr  array<int>
    isr             array<int>
    cause           string
    """
    before, empty = in_order(*PARTITION), f.array().cast("array<int>")
    rows = (
        partition_states(records, clears=True)
        .withColumn("before", f.coalesce(f.lag("elr").over(before), empty))
        .withColumn("known_before", f.coalesce(f.lag("last_known_elr").over(before), empty))
        .where(
            ~same_members(f.col("elr"), f.col("before"))
            | ~same_members(f.col("last_known_elr"), f.col("known_before"))
        )
    )
    return with_topic(rows, records).select(
        "topic",
        "topic_id",
        f.col("partition_id").alias("partition"),
        "offset",
        f.col("timestamp").alias("time"),
        "timestamp_ms",
        "elr",
        f.array_except("elr", "before").alias("added"),
        f.array_except("before", "elr").alias("removed"),
        "last_known_elr",
        "isr",
        "cause",
    )
