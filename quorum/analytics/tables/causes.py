"""The table `causes`: the causes of changes, as the records state them."""

from __future__ import annotations

from itertools import chain

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from quorate.quorum.analytics.tables.events import UNKNOWN, with_topic
from quorate.quorum.metadata.causes import DOCS

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

    offset        bigint
    time          timestamp
    timestamp_ms  bigint
    type          string
    topic         string     only for partition records, like topic_id and partition
    topic_id      string
    partition     int
    broker        int        only for broker records
    cause         string
    why           string     one sentence
    """
    words = f.create_map(*(f.lit(each) for each in chain(*DOCS.items())))
    said = records.where(f.col("type").isin(*CAUSED) & f.col("snapshot_index").isNull())
    return with_topic(said, records).select(
        "offset",
        f.col("timestamp").alias("time"),
        "timestamp_ms",
        "type",
        "topic",
        "topic_id",
        f.col("partition_id").alias("partition"),
        f.col("broker_id").alias("broker"),
        f.coalesce("cause", f.lit(UNKNOWN)).alias("cause"),
        f.coalesce(words[f.coalesce("cause", f.lit(""))], "cause").alias("why"),
    )
