"""The table `warnings`: why the other tables may be wrong or incomplete."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from quorate.quorum.analytics.log.damage import (
    CONFLICT,
    DAMAGED_BATCH,
    DAMAGED_RECORD,
    DIVERGENCE,
    GAP,
)
from quorate.quorum.analytics.spark.columns import SNAPSHOT_NAME, UNKNOWN_TYPE, UNKNOWN_VERSION
from quorate.quorum.analytics.spark.remarks import REMARK
from quorate.quorum.analytics.tables.events import BUCKET, CLUSTER, LATEST
from quorate.quorum.analytics.tables.min_isr import BROKER_RESOURCE, MIN_ISR
from quorate.quorum.analytics.tables.quorum import LEADER_CHANGE, VOTERS

ERROR, NOTE = "error", "note"
KINDS = {
    DAMAGED_BATCH: ERROR,
    DAMAGED_RECORD: ERROR,
    GAP: ERROR,
    UNKNOWN_VERSION: ERROR,
    UNKNOWN_TYPE: NOTE,
    "missing-base": ERROR,
    DIVERGENCE: ERROR,
    CONFLICT: NOTE,
    "clock-step": NOTE,
    "clock-ahead": NOTE,
    "uncommitted-tail": NOTE,
    "broker-min-isr": NOTE,
}
"""The kinds of warnings, with their severity.

An error means that records are missing or contradict each other, so rows of the tables may be
wrong. A note means that a duration, or the newest rows, may be."""
COLUMNS = (
    CLUSTER,
    "kind",
    "first_offset",
    "last_offset",
    "count",
    "timestamp_ms",
    "type",
    "detail",
)


def warnings(log: DataFrame) -> DataFrame:
    """One row per reason why other tables may be wrong or incomplete. An error means that records
    are missing or contradict each other. A note means that a duration, or the newest rows, may be
    wrong.

    cluster_id    string
    kind          string   a name of KINDS
    severity      string   error or note
    first_offset  bigint   the first offset that it concerns
    last_offset   bigint   the last one; null if it is not known
    count         bigint   the number of records that it concerns; null if it is not known
    timestamp_ms  bigint   of the first record that it concerns; null if it cannot be read
    type          string   the record type, if it concerns one
    detail        string   a sentence
    """
    # The parts of the log that are no rows of a snapshot, in which offsets repeat.
    in_log = log.where(f.col("snapshot_index").isNull() & (f.col("type") != REMARK))
    steps = _steps_back(in_log)
    made = [
        _damage(log),
        _unknown(log),
        _missing_base(log, in_log),
        _divergence(log, in_log, steps),
        _clock_steps(steps),
        _uncommitted_tail(log, in_log),
        _settings_of_brokers(log),
    ]
    if LATEST in log.columns:
        made.append(_clock_ahead(in_log))
    severity = reduce(
        lambda column, kind: column.when(f.col("kind") == kind, KINDS[kind]),
        [kind for kind in KINDS if KINDS[kind] == ERROR],
        f.when(f.lit(False), NOTE),
    ).otherwise(NOTE)
    rows = reduce(DataFrame.unionByName, (each.select(*COLUMNS) for each in made))
    return rows.select(CLUSTER, "kind", severity.alias("severity"), *COLUMNS[2:])


def _row(
    kind: Column | str,
    first: Column,
    last: Column,
    detail: Column,
    *,
    count: Column | None = None,
    at_ms: Column | None = None,
    of_type: Column | None = None,
) -> list[Column]:
    """Return the columns of a warning."""
    number = last - first + 1 if count is None else count
    values = (
        f.col(CLUSTER),
        f.lit(kind) if isinstance(kind, str) else kind,
        first,
        last,
        number.cast("bigint"),
        f.lit(None).cast("bigint") if at_ms is None else at_ms,
        f.lit(None).cast("string") if of_type is None else of_type,
        detail,
    )
    return [value.alias(name) for value, name in zip(values, COLUMNS, strict=True)]


def _damage(log: DataFrame) -> DataFrame:
    last = f.col("remark_end") - 1
    damaged = f.col("remark").isin(DAMAGED_BATCH, DAMAGED_RECORD, GAP, DIVERGENCE, CONFLICT)
    return log.where(damaged).select(*_row(f.col("remark"), f.col("offset"), last, f.col("value")))


def _unknown(log: DataFrame) -> DataFrame:
    """Return one row for each type and version of a record that this version cannot read."""
    text = f.format_string(
        "%d records %s of version %d cannot be read by this version of Quorate. No table but"
        " `records` has them.",
        "number", "type", "version",
    )  # fmt: skip
    return (
        log.where(f.col("effective") & f.col("remark").isin(UNKNOWN_TYPE, UNKNOWN_VERSION))
        .groupBy(CLUSTER, "remark", "type", "version")
        .agg(
            f.min("offset").alias("first"),
            f.max("offset").alias("last"),
            f.count("*").alias("number"),
            f.min_by("timestamp_ms", "offset").alias("at_ms"),
        )
        .select(
            *_row(
                f.col("remark"), f.col("first"), f.col("last"), text,
                count=f.col("number"), at_ms=f.col("at_ms"), of_type=f.col("type"),
            )
        )
    )  # fmt: skip


def _missing_base(log: DataFrame, in_log: DataFrame) -> DataFrame:
    base = log.groupBy(CLUSTER).agg(f.count("snapshot_index").alias("of_base"))
    begins = in_log.groupBy(CLUSTER).agg(f.min("offset").alias("begin"))
    text = f.format_string(
        "The log begins at offset %d, and the snapshot with the records before it is missing. All"
        " that was created before is missing or without a name.",
        "begin",
    )
    return (
        begins.join(base, CLUSTER)
        .where((f.col("begin") > 0) & (f.col("of_base") == 0))
        .select(*_row("missing-base", f.lit(0).cast("bigint"), f.col("begin") - 1, text))
    )


def _steps_back(in_log: DataFrame) -> DataFrame:
    """Return the records whose timestamp or epoch is lower than that of the record before.

    One task compares the neighbours of one bucket of offsets, and one compares the buckets."""
    rows = in_log.select(CLUSTER, "offset", "timestamp_ms", "epoch").withColumn(
        "bucket", f.expr(f"offset div {BUCKET}")
    )
    inside = Window.partitionBy(CLUSTER, "bucket").orderBy("offset")
    near = rows.select(
        CLUSTER, "offset", "timestamp_ms", "epoch",
        f.lag("timestamp_ms").over(inside).alias("before_ms"),
        f.lag("epoch").over(inside).alias("before_epoch"),
    )  # fmt: skip
    across = Window.partitionBy(CLUSTER).orderBy("bucket")
    edges = rows.groupBy(CLUSTER, "bucket").agg(
        f.min("offset").alias("offset"),
        *(f.min_by(name, "offset").alias(name) for name in ("timestamp_ms", "epoch")),
        f.max_by("timestamp_ms", "offset").alias("last_ms"),
        f.max_by("epoch", "offset").alias("last_epoch"),
    )
    far = edges.select(
        CLUSTER, "offset", "timestamp_ms", "epoch",
        f.lag("last_ms").over(across).alias("before_ms"),
        f.lag("last_epoch").over(across).alias("before_epoch"),
    )  # fmt: skip
    return near.unionByName(far).where("timestamp_ms < before_ms or epoch < before_epoch")


def _clock_steps(steps: DataFrame) -> DataFrame:
    text = f.format_string(
        "The clock goes back by %d ms at offset %d, between the controller epochs %d and %d."
        " Durations across it are too short, and 0 if they would be negative.",
        f.col("before_ms") - f.col("timestamp_ms"), "offset", "before_epoch", "epoch",
    )  # fmt: skip
    at = f.col("offset")
    return steps.where("timestamp_ms < before_ms").select(
        *_row("clock-step", at, at, text, at_ms=f.col("timestamp_ms"))
    )


def _clock_ahead(in_log: DataFrame) -> DataFrame:
    text = f.format_string(
        "The log ends with times up to %d ms later than the last change of its file, or than the"
        " clock of this machine, so the clock of a controller is fast. Intervals that have not"
        " ended count up to the last change of the file, or to the clock of this machine.",
        f.col("newest_ms") - f.col(LATEST),
    )
    at = f.struct("offset", "timestamp_ms")
    later = in_log.where(f.col("timestamp_ms") > f.col(LATEST)).groupBy(CLUSTER, LATEST)
    return later.agg(
        f.min(at).alias("first"),
        f.max("offset").alias("last"),
        f.count("*").alias("number"),
        f.max("timestamp_ms").alias("newest_ms"),
    ).select(
        *_row(
            "clock-ahead", f.col("first.offset"), f.col("last"), text,
            count=f.col("number"), at_ms=f.col("first.timestamp_ms"),
        )
    )  # fmt: skip


def _divergence(log: DataFrame, in_log: DataFrame, steps: DataFrame) -> DataFrame:
    """Return the places where the epochs contradict Raft, so the files have different histories."""
    at = f.col("offset")
    falls = f.format_string(
        "The epoch falls from %d to %d at offset %d, so the files are of different histories.",
        "before_epoch", "epoch", "offset",
    )  # fmt: skip
    within = steps.where("epoch < before_epoch").select(
        *_row(DIVERGENCE, at, at, falls, at_ms=f.col("timestamp_ms"))
    )
    names = log.where(f.col("remark") == SNAPSHOT_NAME).select(
        CLUSTER, "offset", f.col("epoch").alias("of_snapshot"), "value"
    )
    differs = f.format_string(
        "The snapshot %s ends in epoch %d, but the log has epoch %d at offset %d.",
        "value", "of_snapshot", "epoch", "offset",
    )  # fmt: skip
    against = (
        in_log.select(CLUSTER, "offset", "epoch", "timestamp_ms")
        .join(f.broadcast(names), [CLUSTER, "offset"])
        .where("epoch <> of_snapshot")
        .select(*_row(DIVERGENCE, at, at, differs, at_ms=f.col("timestamp_ms")))
    )
    return within.unionByName(against)


def _uncommitted_tail(log: DataFrame, in_log: DataFrame) -> DataFrame:
    """Return one row about the records that the files do not prove to be committed.

    A quorum with one voter commits what it appends."""
    unproved = in_log.where(~f.coalesce("committed", f.lit(False))).groupBy(CLUSTER)
    tail = unproved.agg(f.min("offset").alias("from"), f.max("offset").alias("end"))
    of_voters = log.where(f.col("type").isin(LEADER_CHANGE, VOTERS)).groupBy(CLUSTER)
    voters = of_voters.agg(f.size(f.max_by("voters", "offset")).alias("voters"))
    text = f.format_string(
        "Nothing proves that the %d records from offset %d on are committed. If a majority of the"
        " voters lacks some, they may still be replaced. Give the logs of all voters to know.",
        f.col("end") - f.col("from") + 1, "from",
    )  # fmt: skip
    return (
        tail.join(voters, CLUSTER, "left")
        .where("coalesce(voters, 2) <> 1")
        .select(*_row("uncommitted-tail", f.col("from"), f.col("end"), text))
    )


def _settings_of_brokers(log: DataFrame) -> DataFrame:
    text = f.format_string(
        f"Broker %s has its own {MIN_ISR}, which `min_isr` and `below_min` do not consider.",
        "resource_name",
    )
    own = (
        (f.col("type") == "CONFIG_RECORD")
        & (f.col("name") == MIN_ISR)
        & (f.col("resource_type") == BROKER_RESOURCE)
        & (f.col("resource_name") != "")
    )
    at = f.col("first")
    return (
        log.where(f.col("effective") & own & f.col("value").isNotNull())
        .groupBy(CLUSTER, "resource_name")
        .agg(
            f.min("offset").alias("first"),
            f.max("offset").alias("last"),
            f.count("*").alias("number"),
            f.min_by("timestamp_ms", "offset").alias("at_ms"),
        )
        .select(
            *_row(
                "broker-min-isr", at, f.col("last"), text,
                count=f.col("number"), at_ms=f.col("at_ms"), of_type=f.lit("CONFIG_RECORD"),
            )
        )
    )  # fmt: skip
