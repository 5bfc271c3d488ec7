"""The table `records`: the log without metadata transactions that came to nothing (KIP-868)."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

BEGIN, END = "BEGIN_TRANSACTION_RECORD", "END_TRANSACTION_RECORD"
MARKERS = (BEGIN, END, "ABORT_TRANSACTION_RECORD")
OF_RAFT = ("LEADER_CHANGE", "KRAFT_VERSION", "KRAFT_VOTERS")


def records(log: DataFrame) -> DataFrame:
    """Every record that took effect, one row each, with the columns of the data source
    (`analytics/columns.py`): what an aborted or never ended metadata transaction holds is left out,
    its markers too. What Raft itself wrote in between, a new leader's record, is no part of it.
    """
    markers = log.where(f.col("type").isin(*MARKERS)).select("type", "offset")
    following = Window.partitionBy(f.lit(0)).orderBy("offset")
    dropped = (
        markers.withColumn("ended", f.lead("type").over(following))
        .withColumn("end_offset", f.lead("offset").over(following))
        .where((f.col("type") == BEGIN) & f.coalesce(f.col("ended") != f.lit(END), f.lit(True)))
        .select(f.col("offset").alias("begin_offset"), "end_offset")
    )
    inside = (
        (f.col("offset") >= f.col("begin_offset"))
        & (f.col("end_offset").isNull() | (f.col("offset") <= f.col("end_offset")))
        & ~f.col("type").isin(*OF_RAFT)
    )
    return log.join(f.broadcast(dropped), inside, "left_anti")
