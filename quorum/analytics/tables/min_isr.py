"""The min.insync.replicas in force for each partition, as far as the log names it.

The setting is that of the topic, or else the cluster-wide default of brokers. If the log has
neither, a static property of the brokers decides, which no log contains. The setting is then null.
Settings of single brokers are not considered either (see the table `warnings`).
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from quorate.quorum.analytics.tables.events import (
    BUCKET,
    CLUSTER,
    SEQUENCE,
    TOPIC,
    in_order,
    lifetimes,
    up_to_now,
)

MIN_ISR = "min.insync.replicas"
TOPIC_RESOURCE, BROKER_RESOURCE = 2, 4
UNBOUNDED = Window.unboundedPreceding
CHANGES = ("topic_min_isr", "cluster_min_isr")
"""The columns of a change of the setting. -1 means that it was unset."""


def settings_of_topics(records: DataFrame) -> DataFrame:
    """Return the changes of the settings of topics, one row for each topic id that a change applies
    to.

    The columns are `cluster_id`, `offset`, `snapshot_index`, `timestamp_ms`, `topic_id` and
    CHANGES."""
    topics = lifetimes(records).select(*TOPIC, "topic", "created_offset", "removed_offset")
    lived = (f.col("offset") >= f.col("created_offset")) & _lives_on()
    return (
        _said(records)
        .where(f.col("resource_type") == TOPIC_RESOURCE)
        .withColumnRenamed("resource_name", "topic")
        .join(topics, [CLUSTER, "topic"])
        .where(lived)
        .select(*SEQUENCE, "timestamp_ms", *TOPIC, *_as(CHANGES, f.col("setting"), _none()))
    )


def settings_by_topic(records: DataFrame) -> DataFrame:
    """Return the changes of the setting of each topic, with the columns of `settings_of_topics`.

    A change of the cluster-wide default is one row for each topic, because it may begin or end a
    time in which writes to the topic fail. The default is not repeated while it stays the same."""
    topics = lifetimes(records).select(*TOPIC, "removed_offset")
    before = f.lag("cluster_min_isr").over(in_order())
    general = (
        _defaults(records)
        .withColumn("before", before)
        .where(~f.col("cluster_min_isr").eqNullSafe(f.col("before")))
        .join(topics, CLUSTER)
        .where(_lives_on())
        .select(*SEQUENCE, "timestamp_ms", *TOPIC, *_as(CHANGES, _none(), f.col(CHANGES[1])))
    )
    return settings_of_topics(records).unionByName(general)


def with_default(rows: DataFrame, records: DataFrame) -> DataFrame:
    """Add the cluster-wide default at each row as `cluster_min_isr`, -1 or null if there is none.

    Every default applies to all topics, so a join would have defaults times topics. Instead one
    task finds the last default before each row in one bucket of offsets, and one the last default
    before each bucket. The work is that of sorting the rows and the defaults."""
    bucket = f.expr(f"offset div {BUCKET}")
    defaults = _defaults(records).drop("timestamp_ms")
    both = (
        rows.withColumn("of_rows", f.lit(True))
        .unionByName(defaults, allowMissingColumns=True)
        .withColumn("bucket", bucket)
    )
    newest = f.max_by("cluster_min_isr", f.struct(*SEQUENCE)).alias("newest")
    last_of = defaults.withColumn("bucket", bucket).groupBy(CLUSTER, "bucket").agg(newest)
    before = Window.partitionBy(CLUSTER).orderBy("bucket").rowsBetween(UNBOUNDED, -1)
    earlier = (
        records.select(CLUSTER, bucket.alias("bucket"))
        .distinct()
        .join(last_of, [CLUSTER, "bucket"], "left")
        .withColumn("earlier", f.last("newest", ignorenulls=True).over(before))
        .drop("newest")
    )
    near = f.last("cluster_min_isr", ignorenulls=True).over(up_to_now("bucket"))
    return (
        both.withColumn("cluster_min_isr", near)
        .where("of_rows")
        .join(earlier, [CLUSTER, "bucket"], "left")
        .withColumn("cluster_min_isr", f.coalesce("cluster_min_isr", "earlier"))
        .drop("of_rows", "bucket", "earlier")
    )


def _said(records: DataFrame) -> DataFrame:
    """Return the records about the setting. -1 in `setting` means that it was unset."""
    value = f.coalesce(f.col("value").cast("int"), f.lit(-1))
    first_in_snapshot = f.when(f.col("snapshot_index").isNotNull(), -1).alias("snapshot_index")
    return records.where((f.col("type") == "CONFIG_RECORD") & (f.col("name") == MIN_ISR)).select(
        CLUSTER,
        "offset",
        first_in_snapshot,
        "timestamp_ms",
        "resource_type",
        "resource_name",
        value.alias("setting"),
    )


def _defaults(records: DataFrame) -> DataFrame:
    """Return the changes of the cluster-wide default of brokers."""
    of_all = (f.col("resource_type") == BROKER_RESOURCE) & (f.col("resource_name") == "")
    return (
        _said(records)
        .where(of_all)
        .select(CLUSTER, *SEQUENCE, "timestamp_ms", f.col("setting").alias("cluster_min_isr"))
    )


def _lives_on() -> Column:
    return f.col("removed_offset").isNull() | (f.col("offset") < f.col("removed_offset"))


def _none() -> Column:
    return f.lit(None).cast("int")


def setting_in_force(*keys: str) -> Column:
    """Return the setting at each row, or null if the log does not name it.

    The rows with the same `keys` must include the changes of `settings_by_topic`."""
    return f.coalesce(*(_last_setting(name, *keys) for name in CHANGES))


def own_or_default(*keys: str) -> Column:
    """Return the setting at each row, or null if the log does not name it.

    The rows with the same `keys` must include the changes of `settings_of_topics`, and the others
    must have the default (`with_default`)."""
    default = f.when(f.col("cluster_min_isr") >= 0, f.col("cluster_min_isr"))
    return f.coalesce(_last_setting("topic_min_isr", *keys), default)


def capped(setting: Column, replicas: Column) -> Column:
    """Return the setting, at most the number of replicas, as brokers apply it. Null stays null."""
    return f.when(setting.isNotNull(), f.least(setting, f.size(replicas)))


def is_below(size: Column, min_isr: Column, replicas: Column) -> Column:
    """Return a boolean column: True if an ISR of this size refuses acks=all, or null if unknown.

    The setting is at least 1, and at most the number of replicas counts. An empty ISR is therefore
    always too small, and a complete one never."""
    return f.when(size < 1, True).when(size >= f.size(replicas), False).otherwise(size < min_isr)


def _last_setting(name: str, *keys: str) -> Column:
    value = f.last(name, ignorenulls=True).over(up_to_now(*keys))
    return f.when(value >= 0, value)


def _as(names: tuple[str, ...], *values: Column) -> list[Column]:
    return [value.alias(name) for name, value in zip(names, values, strict=True)]
