"""The tables `leadership` and `availability`: the leaders of each partition, and times without
one.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from quorate.quorum.analytics.tables.events import (
    CLUSTER,
    INTERVAL,
    PARTITION,
    TOPIC,
    began,
    ended_by_removal,
    in_order,
    with_durations,
)
from quorate.quorum.analytics.tables.partition_states import partition_states
from quorate.quorum.metadata.records import NO_LEADER

RUN_KEY = (CLUSTER, "topic", "topic_id", "partition")
RUN_TIMES = ("start_offset", "start_ms", "end_ms", "duration_ms", "cause")
RUNS = """cluster_id string, topic string, topic_id string, partition int, start_offset bigint,
start_ms bigint, end_ms bigint, duration_ms bigint, cause string, alone boolean, epochs bigint"""
"""The columns of a run of leader epochs, which all have a leader, or which all have none."""


def leadership(records: DataFrame) -> DataFrame:
    """One row per leader epoch of a partition. Leader -1 is a time without a leader.

    cluster_id    string
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
    began         string     created, snapshot (earlier epochs are unknown), changed
    cause         string     the cause of the new epoch
    """
    spell = in_order(*PARTITION)
    rows = (
        partition_states(records)
        .where("named")
        .withColumn("before", f.lag("offset").over(spell))
        .withColumn("began", began("before"))
        .withColumn("end_offset", f.lead("offset").over(spell))
        .withColumn("end_ms", f.lead("timestamp_ms").over(spell))
        .withColumnsRenamed({"offset": "start_offset", "timestamp_ms": "start_ms"})
    )
    return with_durations(ended_by_removal(rows, records), records).select(
        CLUSTER,
        "topic",
        "topic_id",
        f.col("partition_id").alias("partition"),
        "leader",
        "leader_epoch",
        *INTERVAL,
        "began",
        "cause",
    )


def availability(records: DataFrame) -> DataFrame:
    """One row per partition: the length of its known life, and all times without a leader.
    Consecutive leader epochs without a leader are one time.

    cluster_id     string
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
    return availability_of_runs(runs_of(spells_as_runs(spells))).drop("lasts")


def spells_as_runs(spells: DataFrame) -> DataFrame:
    """Return one run for each leader epoch of the table `leadership`."""
    alone = (f.col("leader") == NO_LEADER).alias("alone")
    return spells.select(*RUN_KEY, *RUN_TIMES, alone, f.lit(1).cast("bigint").alias("epochs"))


def runs_of(runs: DataFrame) -> DataFrame:
    """Join consecutive runs of a partition with a leader, and those without one."""
    order = Window.partitionBy(*TOPIC, "partition").orderBy("start_offset")
    turns = f.coalesce(f.lag("alone").over(order) != f.col("alone"), f.lit(True))
    numbered = runs.withColumn("turn", f.sum(turns.cast("int")).over(order))
    joined = numbered.groupBy(*RUN_KEY, "turn").agg(
        f.min("start_offset").alias("start_offset"),
        f.min_by("start_ms", "start_offset").alias("start_ms"),
        f.max_by("end_ms", "start_offset").alias("end_ms"),
        f.sum("duration_ms").alias("duration_ms"),
        f.min_by("cause", "start_offset").alias("cause"),
        f.first("alone").alias("alone"),
        f.sum("epochs").alias("epochs"),
    )
    return joined.drop("turn")


def availability_of_runs(runs: DataFrame) -> DataFrame:
    """Return the table `availability`, made of joined runs, with the column `lasts`.

    `lasts` is true while the partition exists."""
    lost = f.when(f.col("alone"), f.col("duration_ms")).otherwise(0)
    window = f.when(f.col("alone"), f.struct(*RUN_TIMES))
    windows = f.array_sort(f.collect_list(window))  # by offset: two may begin at the same time
    whole = f.col("total_ms")
    share = f.when(whole > 0, 1 - f.col("leaderless_ms") / whole).otherwise(f.lit(1.0))
    return (
        runs.groupBy(*RUN_KEY)
        .agg(
            f.sum("duration_ms").alias("total_ms"),
            f.sum(lost).alias("leaderless_ms"),
            f.max(lost).alias("longest_ms"),
            f.transform(windows, _without_offset).alias("windows"),
            f.sum(f.when(~f.col("alone"), f.col("epochs")).otherwise(0)).alias("leader_epochs"),
            f.bool_or(f.col("end_ms").isNull()).alias("lasts"),
        )
        .withColumn("available", share)
    )


def _without_offset(window: Column) -> Column:
    return f.struct(*(window[name].alias(name) for name in RUN_TIMES[1:]))
