"""The table `configs`: every config value and the time during which it was set."""

from __future__ import annotations

from itertools import chain

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from quorate.quorum.analytics.log.text import RESOURCES
from quorate.quorum.analytics.tables.events import (
    CLUSTER,
    INTERVAL,
    in_order,
    lifetimes,
    with_durations,
)
from quorate.quorum.metadata.image import TOPIC_RESOURCE

KEY = (CLUSTER, "resource_type", "resource_name", "name")


def configs(records: DataFrame) -> DataFrame:
    """One row for each record that set a config, even if the value was the same as before.

    cluster_id     string
    resource_type  string     topic, broker, broker-logger, client-metrics, group
    resource_name  string     "" is the cluster-wide default of brokers
    name           string
    value          string
    start_offset   bigint
    start_time     timestamp
    start_ms       bigint
    end_offset     bigint     null while the value is set, like end_time and end_ms
    end_time       timestamp
    end_ms         bigint
    duration_ms    bigint
    ended          string     changed, unset, or removed with its topic; null while it is set
    """
    order = in_order(*KEY)
    said = records.where(f.col("type") == "CONFIG_RECORD").select(
        *KEY, "value", "offset", "snapshot_index", "timestamp_ms", f.lit("unset").alias("without")
    )
    rows = (
        said.unionByName(_removals(records, said))
        .withColumn("end_offset", f.lead("offset").over(order))
        .withColumn("end_ms", f.lead("timestamp_ms").over(order))
        .withColumn(
            "ended",
            f.when(f.lead("value").over(order).isNotNull(), "changed").otherwise(
                f.lead("without").over(order)
            ),
        )
        .where(f.col("value").isNotNull())
        .withColumnsRenamed({"offset": "start_offset", "timestamp_ms": "start_ms"})
    )
    names = f.create_map(*(f.lit(each) for each in chain(*RESOURCES.items())))
    number = f.col("resource_type")
    return with_durations(rows, records).select(
        CLUSTER,
        f.coalesce(names[number], number.cast("string")).alias("resource_type"),
        "resource_name",
        "name",
        "value",
        *INTERVAL,
        "ended",
    )


def _removals(records: DataFrame, said: DataFrame) -> DataFrame:
    """Return one row per config that was removed with its topic.

    No record says so: the removal of a topic removes its configs."""
    gone = (
        lifetimes(records)
        .where(f.col("removed_offset").isNotNull())
        .select(
            CLUSTER,
            f.col("topic").alias("resource_name"),
            f.col("removed_offset").alias("offset"),
            f.col("removed_ms").alias("timestamp_ms"),
        )
    )
    ever = said.where(f.col("resource_type") == TOPIC_RESOURCE).select(*KEY).distinct()
    return ever.join(gone, [CLUSTER, "resource_name"]).select(
        *KEY,
        f.lit(None).cast("string").alias("value"),
        "offset",
        f.lit(None).cast("int").alias("snapshot_index"),
        "timestamp_ms",
        f.lit("removed").alias("without"),
    )
