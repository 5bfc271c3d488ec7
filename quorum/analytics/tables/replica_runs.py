"""Runs of one replica in one state: in the ISR, out of it, or no longer a replica."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from quorate.quorum.analytics.tables.events import (
    CLUSTER,
    PARTITION,
    TOPIC,
    as_of,
    in_order,
    lifetimes,
)
from quorate.quorum.analytics.tables.partition_states import partition_states

IN, OUT, GONE = "in", "out", "gone"
"""The states of a replica. GONE means that a reassignment removed it."""


def replica_runs(records: DataFrame) -> DataFrame:
    """Return one row per run of a replica in one state.

    Beside the columns of PARTITION and `broker`, a row has `state`, `before` (the state before it,
    or null), `next` (the state after it, or null), `offset` and `timestamp_ms` of its beginning,
    `next_offset` and `next_ms` of its end, and `lasted_ms`. The removal of the topic ends a run,
    and leaves `next` null."""
    replica = in_order(*PARTITION, "broker")
    last = f.coalesce(f.lag("replicas").over(in_order(*PARTITION)), f.array().cast("array<int>"))
    state = (
        f.when(f.array_contains("isr", f.col("broker")), IN)
        .when(f.array_contains("replicas", f.col("broker")), OUT)
        .otherwise(GONE)
    )
    moments = (
        partition_states(records)
        .withColumn("replicas_before", last)
        .withColumn("broker", f.explode(f.array_union("replicas", "replicas_before")))
        .withColumn("state", state)
        .withColumn("before", f.lag("state").over(replica))
        .where(f.col("before").isNull() | (f.col("before") != f.col("state")))
    )
    removals = lifetimes(records).select(*TOPIC, "removed_offset", "removed_ms")
    until = f.coalesce("next_ms", "as_of_ms")
    return (
        moments.withColumn("next", f.lead("state").over(replica))
        .withColumn("next_offset", f.lead("offset").over(replica))
        .withColumn("next_ms", f.lead("timestamp_ms").over(replica))
        .join(removals, list(TOPIC), "left")
        .join(f.broadcast(as_of(records)), CLUSTER)
        .withColumn("next_offset", f.coalesce("next_offset", "removed_offset"))
        .withColumn("next_ms", f.coalesce("next_ms", "removed_ms"))
        .withColumn("lasted_ms", f.greatest(until - f.col("timestamp_ms"), f.lit(0)))
        .select(
            *PARTITION, "broker", "state", "before", "next", "offset", "timestamp_ms",
            "next_offset", "next_ms", "lasted_ms",
        )
    )  # fmt: skip
