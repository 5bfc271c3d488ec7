"""The table `causes`: the causes of changes, as the records state them."""

from __future__ import annotations

from itertools import chain

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from quorate.quorum.analytics.tables.events import CLUSTER, UNKNOWN, with_topic
from quorate.quorum.metadata.causes import DOCS

OLD_END, NEW_END = 1, 2
"""The words of a stored cause that carry end offsets (`with_ends`)."""
CAUSED = (
    "REGISTER_BROKER_RECORD",
    "UNREGISTER_BROKER_RECORD",
    "BROKER_REGISTRATION_CHANGE_RECORD",
    "PARTITION_RECORD",
    "PARTITION_CHANGE_RECORD",
)


def causes(records: DataFrame) -> DataFrame:
    """One row per record about a broker or a partition that can carry a cause, with the cause in
    words. NoOp records are left out, although they can carry one, as are the rows of a snapshot.

    cluster_id    string
    offset        bigint
    time          timestamp
    timestamp_ms  bigint
    type          string
    topic         string     only for partition records, like topic_id and partition
    topic_id      string
    partition     int
    broker        int        only for broker records
    cause         string     the name, without the end offsets that the record stores behind it
    why           string     one sentence
    old_end       bigint     only for unclean elections: the largest end offset known before
    new_end       bigint     only for unclean elections: the end offset of the new leader's log
    """
    words = f.create_map(*(f.lit(each) for each in chain(*DOCS.items())))
    name = f.get(f.split("cause", " "), f.lit(0))
    said = records.where(f.col("type").isin(*CAUSED) & f.col("snapshot_index").isNull())
    return with_topic(said, records).select(
        CLUSTER,
        "offset",
        f.col("timestamp").alias("time"),
        "timestamp_ms",
        "type",
        "topic",
        "topic_id",
        f.col("partition_id").alias("partition"),
        f.col("broker_id").alias("broker"),
        f.coalesce(name, f.lit(UNKNOWN)).alias("cause"),
        f.coalesce(words[f.coalesce(name, f.lit(""))], "cause").alias("why"),
        _end(OLD_END).alias("old_end"),
        _end(NEW_END).alias("new_end"),
    )


def _end(position: int) -> Column:
    """Return the end offset at this word of the cause, or null if it names none or no number."""
    word = f.get(f.split("cause", " "), f.lit(position))
    return f.when(word.rlike("^[0-9]{1,19}$"), word.cast("bigint"))
