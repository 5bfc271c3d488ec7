"""The tables of a cluster's history: the one registry of them, and how a directory becomes views.

Every table is a function of the table `records`. Intervals are half open: `end_*` is null for what
still lasts, and `duration_ms` then counts up to the last record. `cause` is "unknown" where the log
does not say: Apache Kafka's never does. A function's docstring lists its columns and their types.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from quorate.quorum.analytics.segments import metadata_dir
from quorate.quorum.analytics.source import NAME, PUSHDOWN, MetadataLogSource
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
    found = metadata_dir(str(directory)).absolute()  # Spark's workers may stand elsewhere
    spark.dataSource.register(MetadataLogSource)
    spark.conf.set(PUSHDOWN, "true")
    options = {"include": "base", "json": str(json).lower(), "pushdown": "true"}
    return spark.read.format(NAME).options(**options).load(str(found))


def read_tables(
    spark: SparkSession, directory: Path | str, *, only: Collection[str] = ()
) -> dict[str, DataFrame]:
    """All of them (or `only` some), lazily: nothing is read before one of them is asked. The
    decoded log is cached, so that a live log is one and the same in all but `records`."""
    wanted = [name for name in TABLES if not only or name in only]
    effective = records(read_log(spark, directory).cache())
    return {
        name: records(read_log(spark, directory, json=True))
        if name == "records"
        else TABLES[name].make(effective)
        for name in wanted
    }


def views(spark: SparkSession, directory: Path | str, *, used_by: str = "") -> list[str]:
    """Register every table as a temporary view of `spark`, under its own name. Planning them all
    takes a while: `used_by` is a query that will do with those it names."""
    named = {name for name in TABLES if re.search(rf"\b{name}\b", used_by, re.IGNORECASE)}
    made = read_tables(spark, directory, only=named)
    for name, table in made.items():
        table.createOrReplaceTempView(name)
    return list(made)


def flat(table: DataFrame) -> DataFrame:
    """For formats without lists: those as JSON."""
    nested = [name for name, kind in table.dtypes if kind.startswith(("array", "struct", "map"))]
    return table.withColumns({name: f.to_json(name) for name in nested}) if nested else table
