"""The metadata log as a data set: what happened to leaders, ISRs and brokers, read with Spark.

Quorate's own logs and Apache Kafka's (3.3 to 4.x) alike, sealed or live. Importing this package
costs nothing: what needs Spark imports it, and it comes with `pip install quorate[spark]`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from quorate.quorum.analytics.report import Summary

__all__ = ["read_tables", "register", "views", "write_report"]


def register(spark: SparkSession) -> None:
    """Teach a session `spark.read.format("quorate.metadata").load(DIR)`; see `source.py`."""
    from quorate.quorum.analytics.source import MetadataLogSource

    spark.dataSource.register(MetadataLogSource)


def views(spark: SparkSession, directory: Path | str) -> list[str]:
    """Register all tables of the metadata log in `directory` as temporary views; their names."""
    from quorate.quorum.analytics.tables import views as register_views

    return register_views(spark, directory)


def read_tables(spark: SparkSession, directory: Path | str) -> dict[str, DataFrame]:
    """The same tables as DataFrames, by name."""
    from quorate.quorum.analytics.tables import read_tables as make

    return make(spark, directory)


def write_report(source_dir: Path, out_html: Path, parquet_dir: Path | None = None) -> Summary:
    """What `quorate history report` does: the tables as Parquet and one self-contained page."""
    from quorate.quorum.analytics.report import report as run

    return run(source_dir, out_html, parquet_dir)
