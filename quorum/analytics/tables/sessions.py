"""The table `sessions`: the times during which each broker was in service, and how they ended."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from quorate.quorum.analytics.tables.events import (
    CLUSTER,
    UNKNOWN,
    in_order,
    up_to_now,
    with_durations,
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


def sessions(records: DataFrame) -> DataFrame:
    """One row per time that a broker was in service or tried to be. It begins when the broker
    registers or is unfenced again. It ends when the broker is fenced, shuts down, is unregistered,
    or is replaced by its next registration. `registered_*` are those of the first record with this
    broker epoch, also in a later session of it. `duration_ms` counts from the unfencing, or from
    the registration if the broker was never unfenced.

    cluster_id         string
    broker             int
    broker_epoch       bigint
    registered_offset  bigint
    registered_ms      bigint
    unfenced_offset    bigint  null: the broker was never unfenced in this session
    unfenced_ms        bigint
    end_offset         bigint
    end_ms             bigint
    duration_ms        bigint
    ended              string  fenced, shutdown, replaced, unregistered; null while it lasts
    cause              string  the cause of its end
    """
    spells = _spells(broker_events(records))
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
    return with_durations(rows, records).select(
        CLUSTER,
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


def broker_events(records: DataFrame) -> DataFrame:
    """Return every record about a broker, numbered by the session that it belongs to.

    `spell` is the number of fencings of this broker epoch before the record, and `fences` is 1 if
    the record is one.
    `newer_*` describe the next registration of the broker."""
    broker, registration = in_order("broker_id"), up_to_now("broker_id", "broker_epoch")
    kind = f.col("type")
    changed = kind != REGISTER
    return (
        records.where(kind.isin(*BROKER_EVENTS))
        .withColumn("fences", (changed & f.coalesce("fenced", f.lit(False))).cast("int"))
        .withColumn("fences", f.when(kind == UNREGISTER, 1).otherwise(f.col("fences")))
        .withColumn("unfences", ~f.coalesce("fenced", f.lit(True)))
        .withColumn("spell", f.sum("fences").over(registration) - f.col("fences"))
        .withColumn("newer", f.lead("broker_epoch").over(broker) != f.col("broker_epoch"))
        .withColumn("newer_offset", f.when(f.col("newer"), f.lead("offset").over(broker)))
        .withColumn("newer_ms", f.when(f.col("newer"), f.lead("timestamp_ms").over(broker)))
        .withColumn("newer_cause", f.when(f.col("newer"), f.lead("cause").over(broker)))
    )


def _spells(events: DataFrame) -> DataFrame:
    """Return one row per session, with the first record of each kind in it."""
    kind = f.col("type")
    first = {
        "registered": kind == REGISTER,
        "unfenced": f.col("unfences"),
        "fenced": f.col("fences") == 1,
        "unregistered": kind == UNREGISTER,
    }
    return events.groupBy(CLUSTER, "broker_id", "broker_epoch", "spell").agg(
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


def _of_registration(name: str) -> Column:
    return f.min(name).over(Window.partitionBy(CLUSTER, "broker_id", "broker_epoch"))
