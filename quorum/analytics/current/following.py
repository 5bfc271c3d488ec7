"""The stream that keeps tables current, and the reader of these tables."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.dataset as pa_dataset  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from quorate.quorum.analytics.current.directory import (
    CARRIED,
    Commit,
    Contents,
    Part,
    commit,
    committed,
    one_step,
    to_merge,
)
from quorate.quorum.analytics.current.steps import INCREMENTAL, Step, carried_schemas, steps
from quorate.quorum.analytics.log.errors import BadOption
from quorate.quorum.analytics.spark.options import TYPES
from quorate.quorum.analytics.spark.source import NAME
from quorate.quorum.analytics.tables import columns_in
from quorate.quorum.analytics.tables.needs import needs_of
from quorate.quorum.analytics.tables.records import records, understood

if TYPE_CHECKING:
    from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter

CHECKPOINT = "_checkpoint"
"""The directory of the stream's offsets, inside of the output directory."""


def append_records(
    spark: SparkSession, locations: Sequence[str], out: Path, max_records: int
) -> DataStreamWriter:
    """Return a stream that appends each record of the logs at `locations` to the table `out`.

    The caller sets its trigger and starts it. Raise BadOption if `out` has other tables."""
    if committed(out).step:
        raise BadOption(f"{out} has tables that --table names: choose a new directory")
    writer = _reader(spark, locations, max_records).load().writeStream.format("parquet")
    return writer.option("path", str(out)).option("checkpointLocation", str(out / CHECKPOINT))


def follow(
    spark: SparkSession,
    locations: Sequence[str],
    out: Path,
    tables: Sequence[str],
    max_records: int,
) -> DataStreamWriter:
    """Return a stream that keeps these tables of the logs at `locations` current in `out`.

    The caller sets its trigger and starts it. Raise BadOption if a table does not exist or is not
    incremental, or if `out` has other tables or has lost its checkpoint."""
    if unknown := sorted(set(tables).difference(INCREMENTAL)):
        raise BadOption(
            f"no stream keeps the table {unknown[0]} current: choose from {', '.join(INCREMENTAL)}"
        )
    chosen = tuple(name for name in INCREMENTAL if name in tables)
    _require_same(out, chosen)
    needs = needs_of(*chosen)
    reader = _reader(spark, locations, max_records).schema(needs.schema())
    rows = reader.option(TYPES, ",".join(sorted(needs.types or ()))).load()
    writer = rows.writeStream.foreachBatch(lambda batch, _: apply(batch, out, chosen))
    return writer.option("checkpointLocation", str(out / CHECKPOINT))


def _reader(spark: SparkSession, locations: Sequence[str], max_records: int) -> DataStreamReader:
    options = {"paths": json.dumps([*locations]), "maxRecordsPerBatch": str(max_records)}
    return spark.readStream.format(NAME).options(**options)


def _require_same(out: Path, chosen: tuple[str, ...]) -> None:
    before = committed(out)
    if not before.step:
        if any((out / CHECKPOINT / "commits").glob("[0-9]*")):
            raise BadOption(f"{out} has records or lost its tables: choose a new directory")
        return
    if before.tables.keys() != set(chosen):
        raise BadOption(
            f"{out} has the tables {', '.join(before.tables)}: a later run must keep the same ones"
        )
    if not (out / CHECKPOINT / "offsets").is_dir():
        raise BadOption(f"{out} has tables but lacks its {CHECKPOINT}: choose a new directory")


def apply(batch: DataFrame, out: Path, tables: tuple[str, ...]) -> None:
    """Apply the rows of a batch to the tables in `out`. Block until the result is on the disk.

    Rows that an earlier call applied have no effect, so a batch may be applied again, also by
    another process that follows the same logs."""
    with one_step(out):
        _apply(batch, out, tables)


def _apply(batch: DataFrame, out: Path, tables: tuple[str, ...]) -> None:
    before = committed(out)
    spark, step = batch.sparkSession, before.step + 1
    new = understood(records(batch)).cache()
    carried = {
        name: spark.read.schema(schema).parquet(str(out / before.carried[name]))
        for name, schema in carried_schemas(new).items()
        if name in before.carried
    }
    made = steps(tables, new, carried)
    spells = made["leadership"].rows.cache() if "availability" in made else None
    try:
        after = Commit(
            step,
            {
                name: _written(made[name], out, name, step, before.tables.get(name, Contents()))
                for name in tables
            },
            {name: _carried(each, out, name, step) for name, each in made.items()},
        )
        commit(out, after, before)
    finally:
        for each in (new, spells):
            if each is not None:
                each.unpersist()


def current_tables(spark: SparkSession, out: Path | str) -> dict[str, DataFrame]:
    """Return the tables in `out` after the last committed step, by name.

    A DataFrame must be used before the stream has committed two more steps, because the files of
    older steps are removed. Raise BadOption if there is no commit."""
    directory = Path(out)
    now = committed(directory)
    if not now.step:
        raise BadOption(f"{directory} has no tables of `quorate history stream --table`")
    return {
        name: _read(spark, directory, name, contents.parts())
        for name, contents in now.tables.items()
    }


def _written(made: Step, out: Path, name: str, step: int, before: Contents) -> Contents:
    """Write the rows of a step, with older final rows that are merged, and return the contents."""
    merged = to_merge([part.rows for part in before.final])
    kept = before.final[: len(before.final) - merged]
    rows = made.rows
    if merged:
        older = _read(rows.sparkSession, out, name, before.final[-merged:])
        rows = rows.unionByName(older.withColumn("final", f.lit(True)))
    folder = f"{name}/step={step}"
    rows.write.mode("overwrite").partitionBy("final").parquet(str(out / folder))
    final, still_open = (_parts(out, f"{folder}/final={value}") for value in ("true", "false"))
    return Contents((*kept, *final), still_open)


def _read(spark: SparkSession, out: Path, name: str, parts: Sequence[Part]) -> DataFrame:
    schema = ", ".join(f"{column.name} {column.type}" for column in columns_in(name))
    if not parts:
        return spark.createDataFrame([], schema)
    return spark.read.schema(schema).parquet(*(str(out / part.folder) for part in parts))


def _parts(out: Path, folder: str) -> tuple[Part, ...]:
    """Return the part that Spark wrote, or none if it had no rows."""
    if not (out / folder).is_dir():
        return ()
    files = [str(path) for path in (out / folder).glob("*.parquet")]
    return (Part(folder, pa_dataset.dataset(files).count_rows()),)


def _carried(made: Step, out: Path, name: str, step: int) -> str:
    folder = f"{CARRIED}/step={step}/{name}"
    made.carried.write.mode("overwrite").parquet(str(out / folder))
    return folder
