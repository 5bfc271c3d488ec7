"""The table `state_changes`: every change of a partition, with the state before and after it."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from quorate.quorum.analytics.tables.events import CLUSTER, PARTITION, began, in_order, with_topic
from quorate.quorum.analytics.tables.partition_states import partition_states


def state_changes(records: DataFrame) -> DataFrame:
    """One row per record that changed a partition, with the state before and after it, like the
    state-change log of a Kafka controller. The columns `*_before` are null in the first row of a
    partition. The removal of a topic is in `topics`.

    cluster_id         string
    topic              string
    topic_id           string
    partition          int
    offset             bigint
    time               timestamp
    timestamp_ms       bigint
    leader_before      int
    leader             int
    leader_epoch       bigint
    isr_before         array<int>
    isr                array<int>
    replicas_before    array<int>
    replicas           array<int>
    adding_replicas    array<int>
    removing_replicas  array<int>
    elr                array<int>
    partition_epoch    bigint
    began              string      created, snapshot (earlier changes are unknown), changed
    cause              string
    """
    order = in_order(*PARTITION)
    changed = ("leader", "isr", "replicas")
    rows = (
        partition_states(records, clears=True)
        .withColumns({f"{name}_before": f.lag(name).over(order) for name in changed})
        .withColumn("earlier", f.lag("offset").over(order))
        .withColumn("began", began("earlier"))
    )
    return with_topic(rows, records).select(
        CLUSTER,
        "topic",
        "topic_id",
        f.col("partition_id").alias("partition"),
        "offset",
        f.col("timestamp").alias("time"),
        "timestamp_ms",
        "leader_before",
        "leader",
        "leader_epoch",
        "isr_before",
        "isr",
        "replicas_before",
        "replicas",
        "adding_replicas",
        "removing_replicas",
        "elr",
        "partition_epoch",
        "began",
        "cause",
    )
