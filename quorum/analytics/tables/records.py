"""The table `records`: the log without metadata transactions that came to nothing (KIP-868)."""

from __future__ import annotations

from pyspark.sql import DataFrame


def records(log: DataFrame) -> DataFrame:
    """Every record that took effect, one row each, with the columns of the data source
    (`analytics/columns.py`): what an aborted or never ended metadata transaction holds is left out,
    its markers too. What Raft itself wrote in between, a new leader's record, is no part of it.
    """
    return log.where("effective").drop("effective")
