"""The tables `topics` and `partitions`: creation, last state and removal of each."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from quorate.quorum.analytics.tables.events import (
    CLUSTER,
    PARTITION,
    SEQUENCE,
    TOPIC,
    as_of,
    instant,
    lifetimes,
    with_topic,
)
from quorate.quorum.analytics.tables.partition_states import WHOLE, partition_states


def topics(records: DataFrame) -> DataFrame:
    """One row per topic id. A topic that was deleted and created again has two rows.

    cluster_id      string
    topic           string
    topic_id        string
    partitions      bigint     how many it has, or had when it was deleted
    created_offset  bigint     that of the snapshot, if the log begins later
    created_time    timestamp
    created_ms      bigint
    removed_offset  bigint     null while the topic exists, like removed_time and removed_ms
    removed_time    timestamp
    removed_ms      bigint
    duration_ms     bigint
    """
    counts = (
        records.where(f.col("type") == WHOLE)
        .groupBy(*TOPIC)
        .agg(f.countDistinct("partition_id").alias("partitions"))
    )
    lived = f.coalesce("removed_ms", "as_of_ms") - f.col("created_ms")
    return (
        lifetimes(records)
        .join(counts, list(TOPIC), "left")
        .join(f.broadcast(as_of(records)), CLUSTER)
        .select(
            CLUSTER,
            "topic",
            "topic_id",
            f.coalesce("partitions", f.lit(0)).alias("partitions"),
            "created_offset",
            instant("created_ms").alias("created_time"),
            "created_ms",
            "removed_offset",
            instant("removed_ms").alias("removed_time"),
            "removed_ms",
            f.greatest(lived, f.lit(0)).alias("duration_ms"),
        )
    )


def partitions(records: DataFrame) -> DataFrame:
    """One row per partition, with its last state: at the end of the log, or when its topic was
    deleted.

    cluster_id             string
    topic                  string
    topic_id               string
    partition              int
    leader                 int         -1: none
    leader_epoch           bigint
    partition_epoch        bigint
    replicas               array<int>
    isr                    array<int>
    elr                    array<int>
    last_known_elr         array<int>
    adding_replicas        array<int>
    removing_replicas      array<int>
    leader_recovery_state  int         1: elected uncleanly, not recovered yet
    changes                bigint      change records since created_offset
    created_offset         bigint      that of the snapshot, if the log begins later
    created_time           timestamp
    created_ms             bigint
    changed_offset         bigint      the last record about the partition
    changed_time           timestamp
    changed_ms             bigint
    removed_offset         bigint      null while the topic exists, like removed_time and removed_ms
    removed_time           timestamp
    removed_ms             bigint
    """
    states = partition_states(records, clears=True)
    order = f.struct(*SEQUENCE)
    last = [name for name in states.columns if name not in PARTITION]
    rows = (
        states.groupBy(*PARTITION)
        .agg(
            f.min("offset").alias("created_offset"),
            f.min_by("timestamp_ms", order).alias("created_ms"),
            f.sum((f.col("type") != WHOLE).cast("int")).alias("changes"),
            f.max_by(f.struct(*last), order).alias("last"),
        )
        .select(*PARTITION, "created_offset", "created_ms", "changes", "last.*")
    )
    return with_topic(rows, records).select(
        CLUSTER,
        "topic",
        "topic_id",
        f.col("partition_id").alias("partition"),
        "leader",
        "leader_epoch",
        "partition_epoch",
        "replicas",
        "isr",
        "elr",
        "last_known_elr",
        "adding_replicas",
        "removing_replicas",
        "leader_recovery_state",
        "changes",
        "created_offset",
        instant("created_ms").alias("created_time"),
        "created_ms",
        f.col("offset").alias("changed_offset"),
        instant("timestamp_ms").alias("changed_time"),
        f.col("timestamp_ms").alias("changed_ms"),
        "removed_offset",
        instant("removed_ms").alias("removed_time"),
        "removed_ms",
    )
