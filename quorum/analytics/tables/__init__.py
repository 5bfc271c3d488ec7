"""The tables of a cluster's history: the one registry of them, and how a directory becomes views.

Every table is a function of the table `records`. Intervals are half open: `end_*` is null for what
still lasts, and `duration_ms` then counts up to the last record. `cause` is "unknown" where the log
does not say: Apache Kafka's never does. A function's docstring lists its columns and their types.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from quorate.quorum.analytics.segments import metadata_dir
from quorate.quorum.analytics.source import NAME, MetadataLogSource
from quorate.quorum.analytics.tables.causes import causes
from quorate.quorum.analytics.tables.configs import configs
from quorate.quorum.analytics.tables.isr import elr, isr
from quorate.quorum.analytics.tables.leadership import availability, leadership
from quorate.quorum.analytics.tables.quorum import quorum
from quorate.quorum.analytics.tables.reassignments import reassignments
from quorate.quorum.analytics.tables.records import records
from quorate.quorum.analytics.tables.sessions import sessions
from quorate.quorum.analytics.tables.topics import partitions, topics


@dataclass(frozen=True, slots=True)
class Table:
    make: Callable[[DataFrame], DataFrame]
    """From the records that took effect."""
    order: tuple[str, ...]
    """Columns that tell rows apart and put them in a useful order."""


TABLES: dict[str, Table] = {
    "records": Table(records, ("offset", "snapshot_index")),
    "topics": Table(topics, ("created_offset", "topic_id")),
    "partitions": Table(partitions, ("topic", "topic_id", "partition")),
    "leadership": Table(leadership, ("start_offset", "topic_id", "partition")),
    "isr": Table(isr, ("offset", "topic_id", "partition")),
    "elr": Table(elr, ("offset", "topic_id", "partition")),
    "sessions": Table(sessions, ("registered_offset", "unfenced_offset", "broker")),
    "availability": Table(availability, ("topic", "topic_id", "partition")),
    "reassignments": Table(reassignments, ("start_offset", "topic_id", "partition")),
    "configs": Table(configs, ("start_offset", "resource_type", "resource_name", "name")),
    "quorum": Table(quorum, ("start_offset",)),
    "causes": Table(causes, ("offset", "topic_id", "partition", "broker")),
}


def read_log(spark: SparkSession, directory: Path | str, *, json: bool = False) -> DataFrame:
    """The rows of the data source that are the whole known history. `json` fills `record`."""
    metadata_dir(str(directory))  # says what is wrong before Spark does
    spark.dataSource.register(MetadataLogSource)
    source = spark.read.format(NAME).option("include", "base").option("json", str(json).lower())
    return source.load(str(directory))


def read_tables(spark: SparkSession, directory: Path | str) -> dict[str, DataFrame]:
    """All of them, lazily: nothing is read before one of them is asked. The decoded log is cached
    in memory and on disk, so that a live log is one and the same in all but `records`."""
    effective = records(read_log(spark, directory).cache())
    made = {name: table.make(effective) for name, table in TABLES.items() if name != "records"}
    return {"records": records(read_log(spark, directory, json=True)), **made}


def views(spark: SparkSession, directory: Path | str) -> list[str]:
    """Register every table as a temporary view of `spark`, under its own name."""
    made = read_tables(spark, directory)
    for name, table in made.items():
        table.createOrReplaceTempView(name)
    return list(made)
