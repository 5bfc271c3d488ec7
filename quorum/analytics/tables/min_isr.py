"""The min.insync.replicas in force for each partition, as far as the log names it.

The setting is that of the topic, or else the cluster-wide default of brokers. If the log has
neither, a static property of the brokers decides, which no log contains. The setting is then null.
Settings of single brokers are not considered either (see the table `warnings`).
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from quorate.quorum.analytics.tables.events import CLUSTER, SEQUENCE, TOPIC, lifetimes, up_to_now

MIN_ISR = "min.insync.replicas"
TOPIC_RESOURCE, BROKER_RESOURCE = 2, 4
CHANGES = ("topic_min_isr", "cluster_min_isr")
"""The columns of a change of the setting. -1 means that it was unset."""


def settings_by_topic(records: DataFrame) -> DataFrame:
    """Return the changes of the setting, one row for each topic that a change applies to.

    The columns are `cluster_id`, `offset`, `snapshot_index`, `timestamp_ms`, `topic_id` and
    CHANGES."""
    value = f.coalesce(f.col("value").cast("int"), f.lit(-1))
    first_in_snapshot = f.when(f.col("snapshot_index").isNotNull(), -1).alias("snapshot_index")
    said = records.where((f.col("type") == "CONFIG_RECORD") & (f.col("name") == MIN_ISR)).select(
        CLUSTER,
        "offset",
        first_in_snapshot,
        "timestamp_ms",
        "resource_type",
        "resource_name",
        value.alias("setting"),
    )
    none = f.lit(None).cast("int")
    topics = lifetimes(records).select(*TOPIC, "topic", "created_offset", "removed_offset")
    lives_on = f.col("removed_offset").isNull() | (f.col("offset") < f.col("removed_offset"))
    lived = (f.col("offset") >= f.col("created_offset")) & lives_on
    own = (
        said.where(f.col("resource_type") == TOPIC_RESOURCE)
        .withColumnRenamed("resource_name", "topic")
        .join(topics, [CLUSTER, "topic"])
        .where(lived)
        .select(*SEQUENCE, "timestamp_ms", *TOPIC, *_as(CHANGES, f.col("setting"), none))
    )
    general = (
        said.where((f.col("resource_type") == BROKER_RESOURCE) & (f.col("resource_name") == ""))
        .join(topics.drop("topic"), CLUSTER)
        .where(lives_on)
        .select(*SEQUENCE, "timestamp_ms", *TOPIC, *_as(CHANGES, none, f.col("setting")))
    )
    return own.unionByName(general)


def setting_in_force(*keys: str) -> Column:
    """Return the setting at each row, or null if the log does not name it.

    The rows with the same `keys` must include the changes of `settings_by_topic`."""
    return f.coalesce(*(_last_setting(name, *keys) for name in CHANGES))


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
