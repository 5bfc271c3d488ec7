"""Spark's tables against the oracle's, and their columns against their documents."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from quorate.quorum.analytics.log.places import origin_of
from quorate.quorum.analytics.log.segments import partition_dir
from quorate.quorum.analytics.tables import TABLES, read_tables
from quorate.quorum.analytics.tables.descriptions import columns_of
from tests.unit.analytics.logs import write_segment
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
    spark: SparkSession, source: Path | Sequence[Path], groups: Groups = TOGETHER
) -> dict[str, list[Row]]:
    """Return the rows of all tables. Each group of tables has its own decoding."""
    made: dict[str, DataFrame] = {}
    for group in groups:
        made |= read_tables(spark, source, only=group)
    for name, table in made.items():
        assert name == "records" or documented(name) == table.dtypes, name
        assert set(TABLES[name].order) <= set(table.columns), name
    made["records"] = made["records"].select("cluster_id", "offset", "type")
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
    oracle = oracle_of(data, directory)
    seen = spark_tables(spark, directory, groups)
    spark.catalog.clearCache()
    assert_equal(seen, oracle, cluster_of(directory))
    return oracle


def assert_histories_as_the_oracle_says(
    spark: SparkSession, histories: Mapping[Path, bytes], groups: Groups
) -> None:
    """Compare many histories in one step, because Spark plans longer than it computes them. Each is
    the log of one cluster, in the directory that is its key."""
    for directory, data in histories.items():
        write_segment(directory, 0, data)
    seen = spark_tables(spark, list(histories), groups)
    spark.catalog.clearCache()
    of_cluster: defaultdict[str, dict[str, list[Row]]]
    of_cluster = defaultdict(lambda: {name: [] for name in TABLES})
    for name, rows in seen.items():
        for row in rows:
            of_cluster[row["cluster_id"]][name].append(row)
    for directory, data in histories.items():
        cluster_id = cluster_of(directory)
        assert_equal(of_cluster[cluster_id], oracle_of(data, directory), cluster_id)


def cluster_of(directory: Path) -> str:
    """Return the cluster's id, or the path of the log if there is no meta.properties."""
    return origin_of(partition_dir(str(directory)) or "").cluster_id


def oracle_of(data: bytes, directory: Path) -> Oracle:
    """Return the oracle of this log. The snapshots in `directory` prove what is committed."""
    oracle = Oracle().fold(logged(data))
    ends = [int(path.stem.split("-")[0]) for path in directory.rglob("*.checkpoint")]
    oracle.warn(list(every(data)), max(ends, default=0))
    return oracle


def assert_equal(seen: dict[str, list[Row]], oracle: Oracle, cluster_id: str) -> None:
    """Compare all tables of one cluster."""
    for name, known in oracle.tables.items():
        if name == "records":
            expected = [{**row, "cluster_id": cluster_id} for row in known]
        else:
            columns = [column for column, _ in documented(name)]
            expected = completed(known, columns, cluster_id)
            assert all(set(row) == set(columns) for row in expected), f"{name} has no oracle"
        assert in_order(seen[name]) == in_order(expected), f"{name} of cluster {cluster_id}"


def in_order(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: repr(sorted(row.items())))
