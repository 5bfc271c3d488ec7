"""The command `quorate history report`: writes a metadata log as one HTML page, and on demand the
tables behind the page as Parquet files.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from quorate.quorum.analytics.log.errors import damage_said_plainly
from quorate.quorum.analytics.log.segments import metadata_dir
from quorate.quorum.analytics.log.text import clock, span
from quorate.quorum.analytics.page.page import render
from quorate.quorum.analytics.page.page_text import History
from quorate.quorum.analytics.spark.remarks import REMARK
from quorate.quorum.analytics.spark.session import local_session
from quorate.quorum.analytics.tables import TABLES, read_log
from quorate.quorum.analytics.tables.isr import isr
from quorate.quorum.analytics.tables.leadership import availability_of, leadership
from quorate.quorum.analytics.tables.quorum import quorum
from quorate.quorum.analytics.tables.records import records, understood
from quorate.quorum.analytics.tables.sessions import sessions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

MAX_ROWS = 20_000
"""Maximum number of rows of one table on the page and in the key figures. Later rows are left out.

The page does not say that rows are missing. The Parquet files contain all rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The key figures of a report, for the terminal. Durations are in ms, times in ms since 1970.

    `start_ms` and `end_ms` are the earliest and the latest timestamp of the log. `records` counts
    all its records, also those of the snapshot that it starts from and those without effect.

    The figures about partitions and leaders count MAX_ROWS rows of a table at most.
    `leader_changes` counts the leader epochs above 0. `partitions_without_leader` counts the
    partitions that had no leader at some time; `longest_without_leader_ms` is the longest of these
    times. `source`, `html` and `parquet` are the paths of the log, the page and the tables."""

    source: str
    records: int
    start_ms: int
    end_ms: int
    partitions: int
    leader_changes: int
    partitions_without_leader: int
    longest_without_leader_ms: int
    html: str
    parquet: tuple[str, ...]

    def lines(self) -> list[str]:
        """Return the lines to print."""
        lasted = span(self.end_ms - self.start_ms)
        period = f"{clock(self.start_ms)} to {clock(self.end_ms)} UTC ({lasted})"
        lost, longest = self.partitions_without_leader, span(self.longest_without_leader_ms)
        return [
            f"{self.source}: {self.records} records, {period}",
            f"{self.partitions} partitions, {self.leader_changes} changes of leader epoch",
            f"{lost} partitions without a leader at some time, longest {longest}",
            f"page: {self.html}",
            *(f"table: {path}" for path in self.parquet),
        ]


def report(
    source_dir: Path,
    out_html: Path,
    parquet_dir: Path | None = None,
    *,
    spark: SparkSession | None = None,
    strict: bool = False,
) -> Summary:
    """Write the page to `out_html`, and return the key figures. Block.

    An old page is replaced, and missing directories are created. `source_dir` is a node's log
    directory, or the directory of its metadata log. If `parquet_dir` is given, write the tables
    `leadership`, `isr`, `sessions`, `availability` and `quorum` there, before the page. Tables that
    are written already stay after an error.

    Run in `spark`, or in a local session if it is None. Raise NoMetadataLog, or NoJava if a local
    session cannot start. If `strict` is true, raise DamagedLog, NewerRecord or MissingBase in place
    of a report about a part of the log. Raise OSError if the page cannot be written. If a table
    cannot be written, Spark's exception is raised.
    """
    metadata_dir(str(source_dir))
    given = nullcontext(spark) if spark else local_session("quorate history report")
    with given as session, damage_said_plainly():
        return _report(session, source_dir, out_html, parquet_dir, strict)


def _report(
    spark: SparkSession, source_dir: Path, out_html: Path, parquet_dir: Path | None, strict: bool
) -> Summary:
    log = read_log(spark, source_dir, strict=strict).cache()
    effective = understood(records(log))
    spells = leadership(effective).cache()
    tables = {
        "leadership": spells,
        "isr": isr(effective).cache(),
        "sessions": sessions(effective).cache(),
        "availability": availability_of(spells).cache(),
        "quorum": quorum(effective).cache(),
    }
    written = [] if parquet_dir is None else write_parquet(tables, parquet_dir)
    bounds = (
        log.where(f.col("type") != REMARK)
        .agg(
            f.count("*").alias("records"),
            f.min("timestamp_ms").alias("start_ms"),
            f.max("timestamp_ms").alias("end_ms"),
        )
        .collect()[0]
    )
    rows = {name: _rows(table, TABLES[name].order) for name, table in tables.items()}
    history = History(
        source=str(source_dir),
        start_ms=bounds["start_ms"] or 0,
        end_ms=bounds["end_ms"] or 0,
        records=bounds["records"],
        **rows,
    )
    out_html.parent.mkdir(parents=True, exist_ok=True)
    out_html.write_text(render(history), encoding="utf-8")
    for table in (*tables.values(), log):
        table.unpersist()
    return _summary(history, out_html, written)


def write_parquet(tables: dict[str, DataFrame], parquet_dir: Path) -> list[str]:
    """Write each table as one Parquet file into a directory of its name below `parquet_dir`, and
    replace the directory's old content. Return the paths of the directories. Raise Spark's
    exception if that fails."""
    written = []
    for name, table in tables.items():
        path = str(parquet_dir / name)
        table.coalesce(1).write.mode("overwrite").parquet(str((parquet_dir / name).absolute()))
        written.append(path)
    return written


def _rows(table: DataFrame, order: Sequence[str]) -> list[dict[str, object]]:
    rows: list[Row] = table.orderBy(*order).limit(MAX_ROWS).collect()
    return [row.asDict(recursive=True) for row in rows]


def _summary(history: History, out_html: Path, written: Sequence[str]) -> Summary:
    lost = [row["longest_ms"] for row in history.availability if row["leaderless_ms"]]
    return Summary(
        source=history.source,
        records=history.records,
        start_ms=history.start_ms,
        end_ms=history.end_ms,
        partitions=len(history.availability),
        leader_changes=sum(1 for row in history.leadership if row["leader_epoch"]),
        partitions_without_leader=len(lost),
        longest_without_leader_ms=max(lost, default=0),
        html=str(out_html),
        parquet=tuple(written),
    )
