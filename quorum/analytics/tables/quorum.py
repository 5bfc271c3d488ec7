"""The table `quorum`: the active controllers, and the voters of the quorum."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from quorate.quorum.analytics.tables.events import (
    CLUSTER,
    INTERVAL,
    in_order,
    same_members,
    with_durations,
)

LEADER_CHANGE, VOTERS = "LEADER_CHANGE", "KRAFT_VOTERS"


def quorum(records: DataFrame) -> DataFrame:
    """One row per epoch of the quorum whose leader change record is in the log, and one more for
    each change of its voters within an epoch (KIP-853).

    cluster_id    string
    leader        int
    epoch         int
    voters        array<int>
    start_offset  bigint
    start_time    timestamp
    start_ms      bigint
    end_offset    bigint      null in the last row, like end_time and end_ms
    end_time      timestamp
    end_ms        bigint
    duration_ms   bigint
    """
    following = in_order()
    now = following.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    elected = f.col("type") == LEADER_CHANGE
    before = f.lag("voters").over(following)
    rows = (
        records.where(f.col("type").isin(LEADER_CHANGE, VOTERS))
        .withColumn("leader", f.last("controller_id", ignorenulls=True).over(now))
        .withColumn("others", before.isNull() | ~same_members(f.col("voters"), before))
        .where(f.col("leader").isNotNull() & (elected | f.col("others")))
        .withColumn("end_offset", f.lead("offset").over(following))
        .withColumn("end_ms", f.lead("timestamp_ms").over(following))
        .withColumnsRenamed({"offset": "start_offset", "timestamp_ms": "start_ms"})
    )
    return with_durations(rows, records).select(CLUSTER, "leader", "epoch", "voters", *INTERVAL)
