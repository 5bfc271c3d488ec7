"""The table `min_isr_windows`: the times in which a partition refused writes with acks=all."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from quorate.quorum.analytics.tables.events import (
    CLUSTER,
    PARTITION,
    TOPIC,
    as_of,
    began,
    in_order,
    instant,
    lifetimes,
    up_to_now,
)
from quorate.quorum.analytics.tables.min_isr import (
    capped,
    is_below,
    setting_in_force,
    settings_by_topic,
)
from quorate.quorum.analytics.tables.partition_states import partition_states
from quorate.quorum.metadata.causes import Cause
from quorate.quorum.metadata.records import NO_LEADER

STATE = ("leader", "isr", "replicas")


def min_isr_windows(records: DataFrame) -> DataFrame:
    """One row per time in which acks=all failed for a partition: it had no leader, or its ISR was
    smaller than min.insync.replicas. A window goes on while one reason follows the other. Times in
    which the setting is unknown count only if the partition has no leader or an empty ISR.

    cluster_id    string
    topic         string
    topic_id      string
    partition     int
    kind          string     offline (no leader), below_min, or both
    start_offset  bigint
    start_time    timestamp
    start_ms      bigint
    end_offset    bigint     null while it lasts, like end_time and end_ms
    end_time      timestamp
    end_ms        bigint
    duration_ms   bigint
    offline_ms    bigint     the part of it without a leader
    smallest_isr  int        the smallest size of the ISR in it
    min_isr       int        the setting at its beginning; null: unknown
    began         string     created, snapshot (it may have begun earlier), changed
    cause         string     the cause of its beginning
    end_cause     string     null while it lasts
    """
    windows = _ended(_runs(_states(records)).where("fails"), records)
    kind = f.when(f.col("ever_offline") & f.col("ever_below"), "both").otherwise(
        f.when(f.col("ever_offline"), "offline").otherwise("below_min")
    )
    return windows.select(
        CLUSTER,
        "topic",
        "topic_id",
        f.col("partition_id").alias("partition"),
        kind.alias("kind"),
        "start_offset",
        instant("start_ms").alias("start_time"),
        "start_ms",
        "end_offset",
        instant("end_ms").alias("end_time"),
        "end_ms",
        "duration_ms",
        "offline_ms",
        "smallest_isr",
        "min_isr",
        "began",
        "cause",
        "end_cause",
    )


def _states(records: DataFrame) -> DataFrame:
    """Return every state of each partition: after its own records, and after changes of the
    setting. `fails` is true if acks=all fails in it."""
    own = partition_states(records).select(
        *PARTITION, "offset", "snapshot_index", "timestamp_ms", "cause", *STATE
    )
    there = own.select(*PARTITION).distinct()
    settings = (
        settings_by_topic(records)
        .join(there, list(TOPIC))
        .withColumn("cause", f.lit(Cause.CONFIG_CHANGED.value))
    )
    now = up_to_now(*PARTITION)
    offline = f.col("leader") == NO_LEADER
    below = is_below(f.col("size"), f.col("min_isr"), f.col("replicas"))
    return (
        settings.unionByName(own, allowMissingColumns=True)
        .withColumn("setting", setting_in_force(*PARTITION))
        .withColumns({name: f.last(name, ignorenulls=True).over(now) for name in STATE})
        .where(f.col("isr").isNotNull())
        .withColumn("size", f.size("isr"))
        .withColumn("min_isr", capped(f.col("setting"), f.col("replicas")))
        .withColumn("offline", offline)
        .withColumn("fails", offline | f.coalesce(below, f.lit(False)))
    )


def _runs(states: DataFrame) -> DataFrame:
    """Return one row per run of states in which `fails` is equal.

    Its end is the beginning of the next run, or null. `offline_ms` lacks the time without a leader
    that has not ended, which began at `last_ms`. It adds up whole times without a leader: adding up
    states would count more if the clock steps back between two of them. All windows have the same
    keys, so that Spark sorts the states once. No join comes before them, because it would sort the
    states again."""
    order = in_order(*PARTITION)
    turns = f.coalesce(f.lag("fails").over(order) != f.col("fails"), f.lit(True))
    moves = f.coalesce(f.lag("offline").over(order) != f.col("offline"), f.lit(True))
    leaves = f.col("offline") & ~f.lead("offline").over(order)
    numbered = (
        states.withColumn("next_offset", f.lead("offset").over(order))
        .withColumn("next_ms", f.lead("timestamp_ms").over(order))
        .withColumn("next_cause", f.lead("cause").over(order))
        .withColumn("before", f.lag("offset").over(order))
        .withColumn("began", began("before"))
        .withColumn("turn", f.sum(turns.cast("int")).over(up_to_now(*PARTITION)))
        .withColumn("since_ms", _latest(f.when(moves, f.col("timestamp_ms"))))
        .withColumn("gone_ms", f.when(leaves, _at_least_0(f.col("next_ms") - f.col("since_ms"))))
    )
    lasts = f.col("next_offset").isNull()
    return numbered.groupBy(*PARTITION, "turn").agg(
        f.first("fails").alias("fails"),
        *(
            f.min_by(name, f.struct("offset", "snapshot_index")).alias(alias)
            for name, alias in (
                ("offset", "start_offset"),
                ("timestamp_ms", "start_ms"),
                ("min_isr", "min_isr"),
                ("began", "began"),
                ("cause", "cause"),
            )
        ),
        *(
            f.max_by(name, f.struct("offset", "snapshot_index")).alias(alias)
            for name, alias in (
                ("next_offset", "end_offset"),
                ("next_ms", "end_ms"),
                ("next_cause", "end_cause"),
            )
        ),
        f.coalesce(f.sum("gone_ms"), f.lit(0)).alias("offline_ms"),
        f.max(f.when(lasts & f.col("offline"), f.col("since_ms"))).alias("last_ms"),
        f.min("size").alias("smallest_isr"),
        f.bool_or("offline").alias("ever_offline"),
        f.bool_or(~f.col("offline")).alias("ever_below"),
    )


def _ended(runs: DataFrame, records: DataFrame) -> DataFrame:
    """Add the topic's name and the duration. End the last run of a partition at the removal of its
    topic, if there is one, and add its last time without a leader."""
    topics = lifetimes(records).select(*TOPIC, "topic", "removed_offset", "removed_ms")
    removed = f.when(f.col("removed_offset").isNotNull(), f.lit("removed"))
    until = f.coalesce("end_ms", "as_of_ms")
    rest = f.coalesce(_at_least_0(until - f.col("last_ms")), f.lit(0))
    return (
        runs.join(topics, list(TOPIC), "left")
        .join(f.broadcast(as_of(records)), CLUSTER)
        .withColumn("end_offset", f.coalesce("end_offset", "removed_offset"))
        .withColumn("end_ms", f.coalesce("end_ms", "removed_ms"))
        .withColumn("end_cause", f.coalesce("end_cause", removed))
        .withColumn("duration_ms", _at_least_0(until - f.col("start_ms")))
        .withColumn("offline_ms", f.least(f.col("offline_ms") + rest, f.col("duration_ms")))
    )


def _latest(value: Column) -> Column:
    """Return the last value of a partition so far that is not null."""
    return f.last(value, ignorenulls=True).over(up_to_now(*PARTITION))


def _at_least_0(ms: Column) -> Column:
    """Return a duration, which is 0 if the clock stepped back by more. A null stays a null."""
    return f.when(ms.isNotNull(), f.greatest(ms, f.lit(0)))
