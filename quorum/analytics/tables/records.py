"""The table `records`: the log without metadata transactions that had no effect (KIP-868)."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f


def records(log: DataFrame) -> DataFrame:
    """Every record that took effect, one row each, with the columns of the data source
    (`analytics/spark/columns.py`).

    The records and markers of aborted and unfinished metadata transactions are left out. Control
    records that Raft wrote in between, such as the record of a new leader, remain."""
    return log.where("effective").drop("effective")


def understood(records: DataFrame) -> DataFrame:
    """Return the records that this version can read. All tables but `records` are made of them.

    A record of a newer version has a type that a table asks for, but its fields are null."""
    return records.where(f.col("remark").isNull())
