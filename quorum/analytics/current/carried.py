"""The rows that one batch carries to the next, in place of all earlier records.

Carried rows are few: they grow with the live partitions, brokers and configs, and not with the
log. They keep the offset and the time of the record that they stand for.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from quorate.quorum.analytics.tables.events import CLUSTER, PARTITION, SEQUENCE, TOPIC, lifetimes
from quorate.quorum.analytics.tables.min_isr import MIN_ISR, TOPIC_RESOURCE
from quorate.quorum.analytics.tables.partition_states import WHOLE, partition_states
from quorate.quorum.analytics.tables.sessions import REGISTER, UNREGISTER, broker_events

MARK = "NO_OP_RECORD"
"""The type of the row that holds the last applied offset of a cluster, and its time."""


def above_mark(rows: DataFrame, carried: DataFrame, offset: str) -> DataFrame:
    """Return the rows whose column `offset` is null, or above the last applied offset of their
    cluster."""
    marks = carried.where(f.col("type") == MARK).select(CLUSTER, f.col("offset").alias("mark"))
    return (
        rows.join(f.broadcast(marks), CLUSTER, "left")
        .where(f.col(offset).isNull() | f.col("mark").isNull() | (f.col(offset) > f.col("mark")))
        .drop("mark")
    )


def for_leadership(records: DataFrame) -> DataFrame:
    """Return the rows that the next leaders depend on: the last two leader epochs of each
    partition, of which the older one shows that the later one is a change."""
    return _together(records, _last_states(records, 2, f.col("named")), _topics(records))


def for_isr(records: DataFrame) -> DataFrame:
    """Return the rows that the next ISRs depend on: the last state of each partition, and the
    values of min.insync.replicas."""
    last = _last_states(records, 1, f.lit(True))
    return _together(records, last, _topics(records), _settings(records))


def for_sessions(records: DataFrame) -> DataFrame:
    """Return the rows that the ends of sessions depend on.

    For the last epoch of each broker, they are its registration, the rows of the session that has
    not ended, and the fencing before that session."""
    epoch = Window.partitionBy(CLUSTER, "broker_id", "broker_epoch")
    broker = Window.partitionBy(CLUSTER, "broker_id").orderBy(*SEQUENCE)
    whole = broker.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    events = (
        broker_events(records)
        .withColumn("last_epoch", f.last("broker_epoch").over(whole))
        .withColumn("last_type", f.last("type").over(whole))
        .withColumn("open_spell", f.sum("fences").over(epoch))
    )
    registration = f.col("type") == REGISTER
    open_session = f.col("spell") == f.col("open_spell")
    fencing = (f.col("fences") == 1) & (f.col("spell") == f.col("open_spell") - 1)
    kept = events.where(
        (f.col("broker_epoch") == f.col("last_epoch"))
        & (f.col("last_type") != UNREGISTER)
        & (registration | open_session | fencing)
    )
    return _together(records, kept)


def _together(records: DataFrame, *parts: DataFrame) -> DataFrame:
    """Return the rows of all parts and the marks, with the columns of `records`."""
    columns = [f.col(each.name).cast(each.dataType) for each in records.schema.fields]
    return reduce(
        DataFrame.unionByName, (each.select(*columns) for each in (*parts, _marks(records)))
    )


def _marks(records: DataFrame) -> DataFrame:
    """Return one row for each cluster: its last offset, with the time of that record."""
    last = records.groupBy(CLUSTER).agg(
        f.max("offset").alias("offset"), f.max_by("timestamp_ms", "offset").alias("timestamp_ms")
    )
    others = [each.name for each in records.schema.fields if each.name not in last.columns]
    empty: dict[str, Column] = {name: f.lit(None) for name in others}
    return last.withColumns(empty | {"type": f.lit(MARK)})


def _last_states(records: DataFrame, count: int, which: Column) -> DataFrame:
    """Return the last states of each partition that exists, each as a whole PartitionRecord."""
    newest_first = Window.partitionBy(*PARTITION).orderBy(*(f.desc(each) for each in SEQUENCE))
    last = (
        partition_states(records)
        .where(which)
        .withColumn("age", f.row_number().over(newest_first))
        .where(f.col("age") <= count)
        .withColumn("type", f.lit(WHOLE))
    )
    return last.join(_removed(records), list(TOPIC), "left_anti")


def _topics(records: DataFrame) -> DataFrame:
    created = records.where(f.col("type") == "TOPIC_RECORD")
    return created.join(_removed(records), list(TOPIC), "left_anti")


def _removed(records: DataFrame) -> DataFrame:
    return lifetimes(records).where(f.col("removed_offset").isNotNull()).select(*TOPIC)


def _settings(records: DataFrame) -> DataFrame:
    """Return the last record about min.insync.replicas of brokers and of each topic that exists."""
    key = (CLUSTER, "resource_type", "resource_name")
    newest_first = Window.partitionBy(*key).orderBy(*(f.desc(each) for each in SEQUENCE))
    last = (
        records.where((f.col("type") == "CONFIG_RECORD") & (f.col("name") == MIN_ISR))
        .withColumn("age", f.row_number().over(newest_first))
        .where((f.col("age") == 1) & f.col("value").isNotNull())
    )
    names = _topics(records).select(CLUSTER, f.col("topic").alias("resource_name"))
    of_topic = f.col("resource_type") == TOPIC_RESOURCE
    of_topics = last.where(of_topic).join(names.distinct(), [CLUSTER, "resource_name"], "left_semi")
    return last.where(~of_topic).unionByName(of_topics)
