"""Every partition record with the full partition state after it.

A PartitionChangeRecord carries only what changed, so this module folds the records. Every change
increments the partition epoch. A change that names a leader, even the same one, increments the
leader epoch.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from quorate.quorum.analytics.tables.events import (
    CLUSTER,
    PARTITION,
    TOPIC,
    UNKNOWN,
    in_order,
    lifetimes,
    up_to_now,
)

WHOLE, CHANGE, CLEAR = "PARTITION_RECORD", "PARTITION_CHANGE_RECORD", "CLEAR_ELR_RECORD"
MERGED = (
    "leader", "isr", "replicas", "removing_replicas", "adding_replicas", "leader_recovery_state",
    "elr", "last_known_elr",
)  # fmt: skip
"""The columns that keep their value until a record changes them."""
ELR = ("elr", "last_known_elr")


def partition_states(records: DataFrame, *, clears: bool = False) -> DataFrame:
    """Return one row per partition record, with the full state of the partition after it.

    The column `named` is true if the record names a leader, even the same one. With `clears`, also
    return a row for each partition that a ClearElrRecord changes. Such a record changes only the
    eligible leader replicas and the partition epoch. Columns of MERGED that `records` lacks stay
    missing (`needs.py`); `leader` must be there."""
    merged = [name for name in MERGED if name in records.columns]
    changes = records.where(f.col("type").isin(WHOLE, CHANGE))
    whole = f.col("type") == WHOLE
    if clears:
        changes = changes.unionByName(_clears(records, changes))
    # In a PartitionRecord null means "none", in a change record it means "no change".
    for name in set(ELR) & set(merged):
        none = f.when(whole, f.array().cast("array<int>"))
        changes = changes.withColumn(name, f.coalesce(name, none))
    now, named = up_to_now(*PARTITION), f.col("leader").isNotNull()
    states = changes.withColumn("named", named).withColumns(
        {name: f.last(name, ignorenulls=True).over(now) for name in merged}
    )
    if clears:
        states = _without_idle_clears(states)
    return _with_epochs(states)


def _with_epochs(states: DataFrame) -> DataFrame:
    """Replace the epochs of the records, which only whole ones have, by those of the states.

    An epoch is that of the last whole record and the number of changes since. All windows have the
    same keys, so that Spark sorts the rows once."""
    now, whole = up_to_now(*PARTITION), f.col("type") == WHOLE
    counted = states.withColumns(
        {
            "leaders": f.sum((f.col("named") & ~whole).cast("int")).over(now),
            "changes": f.sum((~whole).cast("int")).over(now),
            "leader_epoch": f.last(f.when(whole, f.col("leader_epoch")), True).over(now),
            "partition_epoch": f.last(f.when(whole, f.col("partition_epoch")), True).over(now),
        }
    )

    def since(number: str) -> Column:
        return f.col(number) - f.last(f.when(whole, f.col(number)), True).over(now)

    return counted.withColumns(
        {
            "leader_epoch": f.col("leader_epoch") + since("leaders"),
            "partition_epoch": f.col("partition_epoch") + since("changes"),
            "cause": f.coalesce("cause", f.lit(UNKNOWN)),
        }
    ).drop("leaders", "changes")


def _clears(records: DataFrame, changes: DataFrame) -> DataFrame:
    """Return a row for every partition that a ClearElrRecord is about: those of its topic, or if it
    names none all of the cluster, as far as they existed when it was written."""
    there = (
        changes.groupBy(*PARTITION)
        .agg(f.min("offset").alias("first_offset"))
        .join(lifetimes(records), list(TOPIC), "left")
        .select(*PARTITION, "first_offset", "removed_offset", "topic")
    )
    cleared = records.where(f.col("type") == CLEAR).drop("topic_id", "partition_id", *ELR)
    of_topics = there.join(cleared.where(f.col("topic").isNotNull()), [CLUSTER, "topic"])
    of_all = cleared.where(f.col("topic").isNull())
    existed = (f.col("offset") > f.col("first_offset")) & (
        f.col("removed_offset").isNull() | (f.col("offset") < f.col("removed_offset"))
    )
    empty = f.array().cast("array<int>")
    rows = of_topics.unionByName(there.drop("topic").join(f.broadcast(of_all), CLUSTER))
    return rows.where(existed).withColumns(dict.fromkeys(ELR, empty)).select(*changes.columns)


def _without_idle_clears(states: DataFrame) -> DataFrame:
    """Remove the rows of ClearElrRecords that had nothing to clear."""
    before = in_order(*PARTITION)
    held = [f.coalesce(f.size(f.lag(name).over(before)), f.lit(0)) for name in ELR]
    return (
        states.withColumn("held", held[0] + held[1])
        .where((f.col("type") != CLEAR) | (f.col("held") > 0))
        .drop("held")
    )
