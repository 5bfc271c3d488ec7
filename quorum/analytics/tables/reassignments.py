"""The table `reassignments`: changes of replica sets, with their durations and results."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from quorate.quorum.analytics.tables.events import (
    CLUSTER,
    INTERVAL,
    PARTITION,
    ended_by_removal,
    in_order,
    same_members,
    with_durations,
)
from quorate.quorum.analytics.tables.partition_states import partition_states


def reassignments(records: DataFrame) -> DataFrame:
    """One row per reassignment of a partition. A reassignment that needs no copying has the
    duration 0. A reassignment to another target while one runs ends the first ("replaced").

    cluster_id         string
    topic              string
    topic_id           string
    partition          int
    from_replicas      array<int>
    to_replicas        array<int>
    adding_replicas    array<int>
    removing_replicas  array<int>
    start_offset       bigint
    start_time         timestamp
    start_ms           bigint
    end_offset         bigint      null while it lasts, like end_time and end_ms
    end_time           timestamp
    end_ms             bigint
    duration_ms        bigint
    ended              string      completed, cancelled, replaced, removed (with its topic)
    cause              string      the cause of its beginning
    end_cause          string
    """
    order = in_order(*PARTITION)
    rows = (
        _turns(records)
        .withColumn("next_offset", f.lead("offset").over(order))
        .withColumn("next_ms", f.lead("timestamp_ms").over(order))
        .withColumn("next_cause", f.lead("cause").over(order))
        .withColumn("next_begins", f.lead(f.col("begins") | f.col("moves")).over(order))
        .withColumn("reached", same_members(f.lead("target").over(order), f.col("target")))
        .where(f.col("begins") | f.col("moves"))
    )
    ended = (
        f.when(f.col("moves") | f.col("reached") & ~f.col("next_begins"), "completed")
        .when(f.col("next_begins"), "replaced")
        .when(f.col("next_offset").isNotNull(), "cancelled")
    )
    at_once = {"end_offset": "offset", "end_ms": "timestamp_ms", "end_cause": "cause"}
    rows = (
        rows.withColumn("ended", ended)
        .withColumns(
            {
                name: f.when(f.col("moves"), f.col(own)).otherwise(
                    f.col(name.replace("end_", "next_"))
                )
                for name, own in at_once.items()
            }
        )
        .withColumnsRenamed({"offset": "start_offset", "timestamp_ms": "start_ms"})
    )
    return (
        with_durations(ended_by_removal(rows, records), records)
        .withColumn(
            "ended", f.when(f.col("end_ms").isNotNull(), f.coalesce("ended", f.lit("removed")))
        )
        .select(
            CLUSTER,
            "topic",
            "topic_id",
            f.col("partition_id").alias("partition"),
            "from_replicas",
            f.col("target").alias("to_replicas"),
            "adding_replicas",
            "removing_replicas",
            *(*INTERVAL, "ended", "cause", "end_cause"),
        )
    )


def _turns(records: DataFrame) -> DataFrame:
    """Return the records at which a reassignment begins, gets another target, or ends.

    `begins` is true for the first two. `moves` is true if a reassignment is complete in one step,
    because nothing has to be copied."""
    order = in_order(*PARTITION)
    running = (f.size("adding_replicas") > 0) | (f.size("removing_replicas") > 0)
    was = f.coalesce("was_running", f.lit(False))
    to_another = ~same_members(f.col("target"), f.col("last_target"))
    back = same_members(f.col("target"), f.col("last_original"))
    return (
        partition_states(records)
        .withColumn("running", running)
        .withColumn("target", f.array_except("replicas", "removing_replicas"))
        .withColumn("original", f.array_except("replicas", "adding_replicas"))
        .withColumn("was_running", f.lag("running").over(order))
        .withColumn("last_replicas", f.lag("replicas").over(order))
        .withColumn("last_target", f.lag("target").over(order))
        .withColumn("last_original", f.lag("original").over(order))
        .withColumn("begins", f.col("running") & (~was | to_another))
        .withColumn(
            "moves",
            ~f.col("running")
            & f.when(was, to_another & ~back).otherwise(
                f.coalesce(f.col("replicas") != f.col("last_replicas"), f.lit(False))
            ),
        )
        .withColumn("from_replicas", f.when(~was, f.col("last_replicas")))
        .withColumn("from_replicas", f.coalesce("from_replicas", "last_original", "original"))
        .where(f.col("begins") | f.col("moves") | (was & ~f.col("running")))
    )
