"""Tables as files: one file for a small table, several for a large one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from quorate.quorum.analytics.log.files import files_in
from quorate.quorum.analytics.log.places import logs_at

ONE_FILE_BYTES = 64 << 20
"""The tables of smaller logs are one file each. The files of others have about this size before
compression."""
ADAPTIVE = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": str(ONE_FILE_BYTES),
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
}
"""Settings with which Spark counts the bytes of a shuffle before it divides them into files."""


def bytes_of(location: Path | str) -> int:
    """Return the size of the logs at a location, with their snapshots. Block.

    Raise NoMetadataLog or BadOption for a location without one."""
    return sum(sum(files_in(log.directory).values()) for log in logs_at([str(location)]))


def write(table: DataFrame, path: Path, kind: str, log_bytes: int) -> None:
    """Write a table as files of the format `kind` in a directory, which is replaced. Block.

    `log_bytes` is the size of the logs that the table is made from. Raise Spark's exception if the
    write fails."""
    if log_bytes <= ONE_FILE_BYTES:
        _save(table.repartition(1), path, kind)
        return
    with _adaptive(table.sparkSession):
        _save(table.hint("rebalance"), path, kind)


def flat(table: DataFrame) -> DataFrame:
    """Return the table with nested columns as JSON texts, for formats without lists."""
    nested = [name for name, kind in table.dtypes if kind.startswith(("array", "struct", "map"))]
    return table.withColumns({name: f.to_json(name) for name in nested}) if nested else table


def _save(table: DataFrame, path: Path, kind: str) -> None:
    writer = table.write.mode("overwrite").format(kind)
    # The path is absolute because Spark's Java process may have another working directory.
    options = writer.option("header", "true").option("ignoreNullFields", "false")
    options.save(str(path.absolute()))


@contextmanager
def _adaptive(spark: SparkSession) -> Iterator[None]:
    """Set ADAPTIVE in the session until the end of the block."""
    before = {name: spark.conf.get(name, None) for name in ADAPTIVE}
    for name, value in ADAPTIVE.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, earlier in before.items():
            if earlier is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, earlier)
