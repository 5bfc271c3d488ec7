"""The table `churn`: how often each replica left the ISR, and whether it came back."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from quorate.quorum.analytics.tables.events import CLUSTER, PARTITION, TOPIC, lifetimes
from quorate.quorum.analytics.tables.replica_runs import IN, OUT, replica_runs

FLAPS = 3
"""The number of times that a flapping replica has left the ISR, or more."""


def churn(records: DataFrame) -> DataFrame:
    """One row per replica that ever left the ISR while it stayed a replica.

    cluster_id      string
    topic           string
    topic_id        string
    partition       int
    broker          int
    times_left      bigint  how often it left the ISR
    times_returned  bigint  how often it came back
    out_ms          bigint  the time outside of the ISR, after it had left
    longest_out_ms  bigint
    first_left_ms   bigint
    last_left_ms    bigint
    pattern         string  flapping (left three times or more), one-way (is not back), recovered
    """
    left = replica_runs(records).where((f.col("state") == OUT) & (f.col("before") == IN))
    back = f.coalesce(f.col("next") == IN, f.lit(False))
    pattern = (
        f.when(f.col("times_left") >= FLAPS, "flapping")
        .when(f.col("is_back"), "recovered")
        .otherwise("one-way")
    )
    names = lifetimes(records).select(*TOPIC, "topic")
    return (
        left.groupBy(*PARTITION, "broker")
        .agg(
            f.count("*").alias("times_left"),
            f.sum(back.cast("int")).alias("times_returned"),
            f.sum("lasted_ms").alias("out_ms"),
            f.max("lasted_ms").alias("longest_out_ms"),
            f.min_by("timestamp_ms", "offset").alias("first_left_ms"),
            f.max_by("timestamp_ms", "offset").alias("last_left_ms"),
            f.max_by(back, "offset").alias("is_back"),
        )
        .join(names, list(TOPIC), "left")
        .select(
            CLUSTER,
            "topic",
            "topic_id",
            f.col("partition_id").alias("partition"),
            "broker",
            "times_left",
            "times_returned",
            "out_ms",
            "longest_out_ms",
            "first_left_ms",
            "last_left_ms",
            pattern.alias("pattern"),
        )
    )
