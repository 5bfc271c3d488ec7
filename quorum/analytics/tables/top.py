"""Short rankings over the tables: the partitions and brokers to which most happened."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from quorate.quorum.analytics.tables.events import CLUSTER

KEY = (CLUSTER, "topic", "topic_id", "partition")
NEEDED = ("leadership", "min_isr_windows", "churn", "reassignments", "brokers")
"""The tables that the rankings are made of."""


def top(tables: Mapping[str, DataFrame], rows: int) -> dict[str, DataFrame]:
    """Return rankings by name over all clusters, each with at most `rows` rows and the worst first.

    `tables` holds at least those of NEEDED. The rankings are lazy."""
    failed = (
        tables["min_isr_windows"]
        .groupBy(*KEY)
        .agg(
            f.sum("duration_ms").alias("failed_ms"),
            f.sum("offline_ms").alias("offline_ms"),
            f.count("*").alias("times"),
            f.max("duration_ms").alias("longest_ms"),
        )
    )
    changed = tables["leadership"].where(f.col("began") == "changed")
    leaders = changed.groupBy(*KEY).agg(
        f.count("*").alias("leader_changes"),
        f.countDistinct("leader").alias("leaders"),
        f.max_by("cause", "start_offset").alias("newest_cause"),
    )
    replicas = tables["churn"].select(*KEY, "broker", "times_left", "out_ms", "pattern")
    moves = tables["reassignments"].select(
        *KEY, "from_replicas", "to_replicas", "duration_ms", "ended"
    )
    brokers = tables["brokers"].select(
        CLUSTER, "broker", "state", "times_fenced", "times_shut_down", "sessions", "served_ms"
    )
    order = {
        "acks=all failed": (failed, "failed_ms"),
        "leader changes": (leaders, "leader_changes"),
        "replicas that left the ISR": (replicas, "times_left"),
        "longest reassignments": (moves, "duration_ms"),
        "brokers fenced": (brokers, "times_fenced"),
    }
    return {
        name: table.orderBy(
            f.desc(column), *(each for each in (*KEY, "broker") if each in table.columns)
        )
        .drop("topic_id")
        .limit(rows)
        for name, (table, column) in order.items()
    }
