"""Spark's tables against the oracle's, and their columns against their documents."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from quorate.quorum.analytics.log.places import origin_of
from quorate.quorum.analytics.log.segments import partition_dir
from quorate.quorum.analytics.tables import TABLES, read_tables
from quorate.quorum.analytics.tables.descriptions import columns_of
from tests.unit.analytics.oracle import Oracle, Row, every, logged
from tests.unit.analytics.oracle_columns import completed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


Groups = Sequence[Sequence[str]]
TOGETHER: Groups = (tuple(TABLES),)
ALONE: Groups = tuple((name,) for name in TABLES)
SOME = (("leadership", "topics"), ("sessions",), ("configs", "quorum"), ("elr", "reassignments"))
IN_GROUPS: Groups = (*SOME, tuple(name for name in TABLES if name not in chain(*SOME)))
"""Groups of tables that have few record types and columns in common."""


def spark_tables(
    spark: SparkSession, directory: Path, groups: Groups = TOGETHER
) -> dict[str, list[Row]]:
    """Return the rows of all tables. Each group of tables has its own decoding."""
    made: dict[str, DataFrame] = {}
    for group in groups:
        made |= read_tables(spark, directory, only=group)
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
    spark: SparkSession, directory: Path, data: bytes, groups: Groups = TOGETHER
) -> Oracle:
    oracle = Oracle().fold(logged(data))
    ends = [int(path.stem.split("-")[0]) for path in directory.rglob("*.checkpoint")]
    oracle.warn(list(every(data)), max(ends, default=0))
    seen = spark_tables(spark, directory, groups)
    spark.catalog.clearCache()
    cluster_id = origin_of(partition_dir(str(directory)) or "").cluster_id
    for name, known in oracle.tables.items():
        if name == "records":
            assert in_order(seen[name]) == in_order(known), name
            continue
        columns = [column for column, _ in documented(name)]
        expected = completed(known, columns, cluster_id)
        assert all(set(row) == set(columns) for row in expected), f"{name} has no oracle"
        assert in_order(seen[name]) == in_order(expected), name
    return oracle


def in_order(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: repr(sorted(row.items())))
