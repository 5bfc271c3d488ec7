"""The tables `leadership` and `availability`: the leaders of each partition, and times without
one.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from quorate.quorum.analytics.tables.events import (
    INTERVAL,
    PARTITION,
    ended_by_removal,
    in_order,
    with_durations,
)
from quorate.quorum.analytics.tables.partition_states import partition_states
from quorate.quorum.metadata.records import NO_LEADER


def leadership(records: DataFrame) -> DataFrame:
    """One row per leader epoch of a partition. Leader -1 is a time without a leader.

    topic         string
    topic_id      string
    partition     int
    leader        int        -1: none
    leader_epoch  bigint
    start_offset  bigint
    start_time    timestamp
    start_ms      bigint
    end_offset    bigint     null while the epoch lasts, like end_time and end_ms
    end_time      timestamp
    end_ms        bigint
    duration_ms   bigint
    cause         string     the cause of the new epoch
    """
    spell = in_order(*PARTITION)
    rows = (
        partition_states(records)
        .where("named")
        .withColumn("end_offset", f.lead("offset").over(spell))
        .withColumn("end_ms", f.lead("timestamp_ms").over(spell))
        .withColumnsRenamed({"offset": "start_offset", "timestamp_ms": "start_ms"})
    )
    return with_durations(ended_by_removal(rows, records), records).select(
        "topic",
        "topic_id",
        f.col("partition_id").alias("partition"),
        "leader",
        "leader_epoch",
        *INTERVAL,
        "cause",
    )


def availability(records: DataFrame) -> DataFrame:
    """One row per partition: the length of its known life, and all times without a leader.

    topic          string
    topic_id       string
    partition      int
    total_ms       bigint
    leaderless_ms  bigint
    longest_ms     bigint   the longest time without a leader
    windows        array<struct<start_ms:bigint,end_ms:bigint,duration_ms:bigint,cause:string>>
    leader_epochs  bigint   only those with a leader
    available      double   share of the time with a leader; 1 if total_ms is 0
    """
    return availability_of(leadership(records))


def availability_of(spells: DataFrame) -> DataFrame:
    """Return the table `availability`, made from the table `leadership`."""
    alone = f.col("leader") == NO_LEADER
    lost = f.when(alone, f.col("duration_ms")).otherwise(0)
    window = f.when(alone, f.struct("start_ms", "end_ms", "duration_ms", "cause"))
    return (
        spells.groupBy("topic", "topic_id", "partition")
        .agg(
            f.sum("duration_ms").alias("total_ms"),
            f.sum(lost).alias("leaderless_ms"),
            f.max(lost).alias("longest_ms"),
            f.array_sort(f.collect_list(window)).alias("windows"),
            f.sum(f.when(~alone, 1).otherwise(0)).alias("leader_epochs"),
        )
        .withColumn(
            "available",
            f.when(f.col("total_ms") > 0, 1 - f.col("leaderless_ms") / f.col("total_ms")).otherwise(
                f.lit(1.0)
            ),
        )
    )
