"""Spark's tables against the oracle's, and their columns against their documents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from quorate.quorum.analytics.tables import TABLES, read_tables
from quorate.quorum.analytics.tables.descriptions import columns_of
from tests.unit.analytics.oracle import Oracle, Row, every, logged

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def spark_tables(
    spark: SparkSession, directory: Path, *, alone: bool = False
) -> dict[str, list[Row]]:
    """Return the rows of all tables. If `alone` is true, each table has its own decoding."""
    made = read_tables(spark, directory)
    if alone:
        made = {name: read_tables(spark, directory, only=(name,))[name] for name in TABLES}
    for name, table in made.items():
        assert name == "records" or documented(name) == table.dtypes, name
        assert set(TABLES[name].order) <= set(table.columns), name
    made["records"] = made["records"].select("offset", "type")
    rows: dict[str, list[Row]] = {}
    for name, table in made.items():
        whole = f.to_json(f.struct("*"), {"ignoreNullFields": "false"})
        rows[name] = [json.loads(text) for (text,) in table.select(whole).collect()]
    return rows


def documented(name: str) -> list[tuple[str, str]]:
    """Return the columns and types that a table's docstring lists."""
    return [(column.name, column.type) for column in columns_of(TABLES[name].make)]


def assert_as_the_oracle_says(
    spark: SparkSession, directory: Path, data: bytes, *, alone: bool = False
) -> Oracle:
    oracle = Oracle().fold(logged(data))
    ends = [int(path.stem.split("-")[0]) for path in directory.rglob("*.checkpoint")]
    oracle.warn(list(every(data)), max(ends, default=0))
    seen = spark_tables(spark, directory, alone=alone)
    spark.catalog.clearCache()
    for name, expected in oracle.tables.items():
        columns = list(expected[0]) if expected else []
        rows = [{column: row[column] for column in columns} for row in seen[name]]
        assert in_order(rows) == in_order(expected), name
        assert len(rows) == len(expected), name
    return oracle


def in_order(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: repr(sorted(row.items())))
