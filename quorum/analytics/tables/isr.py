"""The tables `isr` and `elr`: changes of each partition's ISR and eligible leader replicas
(KIP-966).
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from quorate.quorum.analytics.tables.events import (
    CLUSTER,
    PARTITION,
    TOPIC,
    began,
    in_order,
    lifetimes,
    same_members,
    with_topic,
)
from quorate.quorum.analytics.tables.min_isr import (
    capped,
    is_below,
    own_or_default,
    settings_of_topics,
    with_default,
)
from quorate.quorum.analytics.tables.partition_states import partition_states


def isr(records: DataFrame) -> DataFrame:
    """One row per change of an ISR, with a comparison of its size with min.insync.replicas. The
    first known ISR counts as a change. A change of min.insync.replicas alone gives no row. If
    neither the topic nor the brokers' cluster-wide default sets it in the log, it is unknown,
    because it may stand in a broker's file.

    cluster_id          string
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
    min_isr             int         the setting, at most the replication factor; null: unknown
    below_min           boolean     null: unknown, because min_isr is
    began               string      created, snapshot (earlier changes are unknown), changed
    cause               string
    """
    changes = (
        partition_states(records)
        .withColumn("before", f.lag("isr").over(in_order(*PARTITION)))
        .withColumn("began", began("before"))
        .withColumn("before", f.coalesce("before", f.array().cast("array<int>")))
        .withColumn("added", f.array_except("isr", "before"))
        .withColumn("removed", f.array_except("before", "isr"))
        .where((f.size("added") > 0) | (f.size("removed") > 0))
        .drop("topic", "name", "value")
    )
    settings = settings_of_topics(records).drop("timestamp_ms", "cluster_min_isr")
    return (
        settings.unionByName(with_default(changes, records), allowMissingColumns=True)
        .withColumn("setting", own_or_default("topic_id"))
        .where(f.col("isr").isNotNull())
        .withColumn("min_isr", capped(f.col("setting"), f.col("replicas")))
        .withColumn("size", f.size("isr"))
        .withColumn("below_min", is_below(f.col("size"), f.col("min_isr"), f.col("replicas")))
        .join(lifetimes(records), list(TOPIC), "left")
        .select(
            CLUSTER,
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
            "began",
            "cause",
        )
    )


def elr(records: DataFrame) -> DataFrame:
    """One row per change of the eligible leader replicas, which may lead without data loss although
    they are not in the ISR, or of the last known ones.

    cluster_id      string
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
        CLUSTER,
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
