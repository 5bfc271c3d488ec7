"""The table `brokers`: the service of each broker, and what it holds at the end of the log."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from quorate.quorum.analytics.tables.events import CLUSTER
from quorate.quorum.analytics.tables.sessions import sessions
from quorate.quorum.analytics.tables.topics import partitions


def brokers(records: DataFrame) -> DataFrame:
    """One row per broker id that ever registered.

    cluster_id           string
    broker               int
    broker_epoch         bigint  the newest one
    state                string  active, registered (never unfenced), or how it ended
    first_registered_ms  bigint
    last_change_ms       bigint  the newest change of the state
    sessions             bigint  as in the table `sessions`
    times_fenced         bigint  sessions that ended without a shutdown
    times_shut_down      bigint  sessions that ended with a controlled shutdown
    served_ms            bigint  the time in service
    leads                bigint  partitions that it leads at the end of the log
    in_isr               bigint  partitions in whose ISR it is at the end
    replicas             bigint  partitions of which it has a replica at the end
    """
    started = f.coalesce("unfenced_offset", "registered_offset")
    state = f.coalesce("ended", f.when(f.col("unfenced_offset").isNull(), "registered"))
    changed = f.coalesce("end_ms", "unfenced_ms", "registered_ms")
    served = f.when(f.col("unfenced_ms").isNotNull(), f.col("duration_ms")).otherwise(0)
    served_by = (
        sessions(records)
        .withColumn("started", started)
        .groupBy(CLUSTER, "broker")
        .agg(
            f.max("broker_epoch").alias("broker_epoch"),
            f.max_by(f.coalesce(state, f.lit("active")), "started").alias("state"),
            f.min_by("registered_ms", "registered_offset").alias("first_registered_ms"),
            f.max_by(changed, "started").alias("last_change_ms"),
            f.count("*").alias("sessions"),
            f.sum((_ended("fenced")).cast("int")).alias("times_fenced"),
            f.sum((_ended("shutdown")).cast("int")).alias("times_shut_down"),
            f.sum(served).alias("served_ms"),
        )
    )
    living = partitions(records).where(f.col("removed_offset").isNull())
    held = (
        living.withColumn("broker", f.explode("replicas"))
        .groupBy(CLUSTER, "broker")
        .agg(
            f.sum((f.col("leader") == f.col("broker")).cast("int")).alias("leads"),
            f.sum(f.array_contains("isr", f.col("broker")).cast("int")).alias("in_isr"),
            f.count("*").alias("replicas"),
        )
    )
    return (
        served_by.join(held, [CLUSTER, "broker"], "left")
        .fillna(0, ["leads", "in_isr", "replicas"])
        .select(*served_by.columns, "leads", "in_isr", "replicas")
    )


def _ended(how: str) -> Column:
    return f.coalesce(f.col("ended") == how, f.lit(False))
