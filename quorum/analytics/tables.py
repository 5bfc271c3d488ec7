"""The tables of a cluster's history, each a function from the data source's rows to a table.

Intervals are half open: `end_*` is null for what still lasts, and `duration_ms` then counts up to
the last record of the log. `cause` is "unknown" where the log does not say: Apache Kafka's never
does. Each table reads the log several times: cache() its rows when several tables are made.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from quorate.quorum.analytics.events import (
    PARTITION,
    SEQUENCE,
    UNKNOWN,
    effective,
    ended_by_removal,
    in_order,
    lifetimes,
    partition_states,
    up_to_now,
    with_durations,
)

MIN_ISR = "min.insync.replicas"
TOPIC_RESOURCE, BROKER_RESOURCE = 2, 4
NO_LEADER = -1


def leadership(log: DataFrame) -> DataFrame:
    """Who led each partition, one row per leader epoch; leader -1 is a time without a leader."""
    log = effective(log)
    spell = in_order(*PARTITION)
    rows = (
        partition_states(log)
        .where("named")
        .withColumn("end_offset", f.lead("offset").over(spell))
        .withColumn("end_ms", f.lead("timestamp_ms").over(spell))
        .withColumnsRenamed({"offset": "start_offset", "timestamp_ms": "start_ms"})
    )
    return with_durations(ended_by_removal(rows, log), log).select(
        "topic",
        "topic_id",
        f.col("partition_id").alias("partition"),
        "leader",
        "leader_epoch",
        "start_offset",
        "start_time",
        "start_ms",
        "end_offset",
        "end_time",
        "end_ms",
        "duration_ms",
        "cause",
    )


def isr(log: DataFrame) -> DataFrame:
    """Every change of an ISR: who came, who went, and whether it is below min.insync.replicas."""
    log = effective(log)
    changes = (
        partition_states(log)
        .withColumn("before", f.lag("isr").over(in_order(*PARTITION)))
        .withColumn("before", f.coalesce("before", f.array().cast("array<int>")))
        .withColumn("added", f.array_except("isr", "before"))
        .withColumn("removed", f.array_except("before", "isr"))
        .where((f.size("added") > 0) | (f.size("removed") > 0))
        .drop("topic", "name", "value")
    )
    governed = _min_isr_settings(log).unionByName(changes, allowMissingColumns=True)
    wanted = f.coalesce(_last_setting("topic_min_isr"), _last_setting("cluster_min_isr"), f.lit(1))
    return (
        governed.withColumn("wanted", wanted)
        .where(f.col("isr").isNotNull())
        .withColumn("min_isr", f.least("wanted", f.size("replicas")))
        .withColumn("size", f.size("isr"))
        .withColumn("below_min", f.col("size") < f.col("min_isr"))
        .join(f.broadcast(lifetimes(log)), "topic_id", "left")
        .select(
            "topic",
            "topic_id",
            f.col("partition_id").alias("partition"),
            "offset",
            f.col("timestamp").alias("time"),
            "timestamp_ms",
            "leader",
            "isr",
            "added",
            "removed",
            "size",
            f.size("replicas").alias("replication_factor"),
            "min_isr",
            "below_min",
            "cause",
        )
    )


def _last_setting(name: str) -> Column:
    """In force at this row; -1 stands for a setting that was taken back."""
    value = f.last(name, ignorenulls=True).over(up_to_now("topic_id"))
    return f.when(value >= 0, value)


def _min_isr_settings(log: DataFrame) -> DataFrame:
    """Changes of min.insync.replicas, of topics and cluster-wide, for every topic they hold for."""
    value = f.coalesce(f.col("value").cast("int"), f.lit(-1))
    first_in_snapshot = f.when(f.col("snapshot_index").isNotNull(), -1).alias("snapshot_index")
    settings = log.where((f.col("type") == "CONFIG_RECORD") & (f.col("name") == MIN_ISR)).select(
        "offset", first_in_snapshot, "resource_type", "resource_name", value.alias("setting")
    )
    own = (f.col("resource_type") == TOPIC_RESOURCE) & (f.col("resource_name") == f.col("topic"))
    general = (f.col("resource_type") == BROKER_RESOURCE) & (f.col("resource_name") == "")
    lived = (f.col("offset") >= f.col("created_offset")) & (
        f.col("removed_offset").isNull() | (f.col("offset") < f.col("removed_offset"))
    )
    return settings.join(f.broadcast(lifetimes(log)), (own & lived) | general).select(
        *SEQUENCE,
        "topic_id",
        f.when(own, f.col("setting")).alias("topic_min_isr"),
        f.when(general, f.col("setting")).alias("cluster_min_isr"),
    )


def availability(log: DataFrame) -> DataFrame:
    """Per partition: how long it lived, how long without a leader, and each such time."""
    return availability_of(leadership(log))


def availability_of(spells: DataFrame) -> DataFrame:
    """From the table `leadership`."""
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


REGISTER = "REGISTER_BROKER_RECORD"
UNREGISTER = "UNREGISTER_BROKER_RECORD"
BROKER_EVENTS = (
    REGISTER,
    UNREGISTER,
    "BROKER_REGISTRATION_CHANGE_RECORD",
    "FENCE_BROKER_RECORD",
    "UNFENCE_BROKER_RECORD",
)


def sessions(log: DataFrame) -> DataFrame:
    """One row per time that a broker served or tried to: from its registration, or from being
    unfenced again, until it was fenced, shut down, replaced by its next registration or
    unregistered (`ended`; null: it still lasts)."""
    log = effective(log)
    broker, registration = in_order("broker_id"), up_to_now("broker_id", "broker_epoch")
    kind = f.col("type")
    changed = kind != REGISTER
    events = (
        log.where(kind.isin(*BROKER_EVENTS))
        .withColumn("fences", (changed & f.coalesce("fenced", f.lit(False))).cast("int"))
        .withColumn("fences", f.when(kind == UNREGISTER, 1).otherwise(f.col("fences")))
        .withColumn("unfences", ~f.coalesce("fenced", f.lit(True)))
        .withColumn("spell", f.sum("fences").over(registration) - f.col("fences"))
        .withColumn("newer", f.lead("broker_epoch").over(broker) != f.col("broker_epoch"))
        .withColumn("newer_offset", f.when(f.col("newer"), f.lead("offset").over(broker)))
        .withColumn("newer_ms", f.when(f.col("newer"), f.lead("timestamp_ms").over(broker)))
        .withColumn("newer_cause", f.when(f.col("newer"), f.lead("cause").over(broker)))
    )
    first = {
        "registered": kind == REGISTER,
        "unfenced": f.col("unfences"),
        "fenced": f.col("fences") == 1,
        "unregistered": kind == UNREGISTER,
    }
    spells = events.groupBy("broker_id", "broker_epoch", "spell").agg(
        *(
            f.min(f.when(condition, f.col(column))).alias(f"{name}_{suffix}")
            for name, condition in first.items()
            for column, suffix in (("offset", "offset"), ("timestamp_ms", "ms"))
        ),
        f.max(f.when(f.col("fences") == 1, f.col("cause"))).alias("fence_cause"),
        f.coalesce(f.bool_or("in_controlled_shutdown"), f.lit(False)).alias("leaving"),
        f.max("newer_offset").alias("newer_offset"),
        f.max("newer_ms").alias("newer_ms"),
        f.max("newer_cause").alias("newer_cause"),
    )
    ended = (
        f.when(f.col("unregistered_offset").isNotNull(), "unregistered")
        .when(f.col("fenced_offset").isNotNull() & f.col("leaving"), "shutdown")
        .when(f.col("fenced_offset").isNotNull(), "fenced")
        .when(f.col("newer_offset").isNotNull(), "replaced")
    )
    cause = f.when(f.col("fenced_offset").isNotNull(), f.col("fence_cause")).otherwise(
        f.col("newer_cause")
    )
    rows = (
        spells.where("unfenced_offset is not null or registered_offset is not null")
        .withColumn("registered_offset", _of_registration("registered_offset"))
        .withColumn("registered_ms", _of_registration("registered_ms"))
        .withColumn("end_offset", f.coalesce("fenced_offset", "newer_offset"))
        .withColumn("end_ms", f.coalesce("fenced_ms", "newer_ms"))
        .withColumn("start_ms", f.coalesce("unfenced_ms", "registered_ms"))
        .withColumn("ended", ended)
        .withColumn("cause", f.when(ended.isNotNull(), f.coalesce(cause, f.lit(UNKNOWN))))
    )
    return with_durations(rows, log).select(
        f.col("broker_id").alias("broker"),
        "broker_epoch",
        "registered_offset",
        "registered_ms",
        "unfenced_offset",
        "unfenced_ms",
        "end_offset",
        "end_ms",
        "duration_ms",
        "ended",
        "cause",
    )


def _of_registration(name: str) -> Column:
    return f.min(name).over(Window.partitionBy("broker_id", "broker_epoch"))


def controllers(log: DataFrame) -> DataFrame:
    """Who was the active controller: one row per epoch of the quorum."""
    following = Window.partitionBy(f.lit(0)).orderBy("offset")
    rows = (
        log.where(f.col("type") == "LEADER_CHANGE")
        .withColumn("end_offset", f.lead("offset").over(following))
        .withColumn("end_ms", f.lead("timestamp_ms").over(following))
        .withColumnsRenamed({"offset": "start_offset", "timestamp_ms": "start_ms"})
    )
    return with_durations(rows, log).select(
        f.col("controller_id").alias("controller"),
        "epoch",
        "start_offset",
        "start_time",
        "start_ms",
        "end_offset",
        "end_time",
        "end_ms",
        "duration_ms",
    )


TABLES: dict[str, Callable[[DataFrame], DataFrame]] = {
    "leadership": leadership,
    "isr": isr,
    "sessions": sessions,
    "availability": availability,
    "controllers": controllers,
}
