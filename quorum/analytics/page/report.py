"""The command `quorate history report`: writes a metadata log as one HTML page, and on demand the
tables behind the page as Parquet files.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from quorate.quorum.analytics.log.errors import damage_said_plainly
from quorate.quorum.analytics.log.places import logs_at
from quorate.quorum.analytics.log.text import clock, span
from quorate.quorum.analytics.page.digest import (
    TABLES_OF_PAGE,
    TABLES_OF_PARTITIONS,
    digest,
    tables_of,
)
from quorate.quorum.analytics.page.page import render
from quorate.quorum.analytics.page.page_text import Figures, History
from quorate.quorum.analytics.page.scope import Scope
from quorate.quorum.analytics.spark.session import local_session
from quorate.quorum.analytics.tables import PlannedLog
from quorate.quorum.analytics.tables.needs import needs_of
from quorate.quorum.analytics.tables.warning_lines import warning_lines
from quorate.quorum.analytics.tables.writing import bytes_of, write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WHOLE = Scope()
"""The scope without restrictions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The key figures of a report, for the terminal. Durations are in ms, times in ms since 1970.

    `start_ms` and `end_ms` are the shown range. `scope` says in words what was left out by request,
    and is "" for the whole history. `figures` counts all rows in the scope; only `records` counts
    those of the whole log. `warnings` are the lines about errors and notes. `source`, `html` and
    `parquet` are the paths of the log, the page and the tables."""

    source: str
    cluster_id: str | None
    scope: str
    start_ms: int
    end_ms: int
    figures: Figures
    warnings: tuple[str, ...]
    html: str
    parquet: tuple[str, ...]

    def lines(self) -> list[str]:
        """Return the lines to print."""
        figures = self.figures
        lasted = span(self.end_ms - self.start_ms)
        period = f"{clock(self.start_ms)} to {clock(self.end_ms)} UTC ({lasted})"
        lost, longest = figures.partitions_without_leader, span(figures.longest_without_leader_ms)
        changes, shrinks = figures.leader_changes, figures.isr_shrinks
        return [
            f"{self.source}: {figures.records} records, {period}",
            *([f"only {self.scope}"] if self.scope else []),
            f"{figures.partitions} partitions, {changes} leader changes, {shrinks} ISR shrinks",
            f"{lost} partitions without a leader at some time, longest {longest}",
            f"{figures.outages} times in which acks=all failed for a partition",
            f"page: {self.html}",
            *(f"table: {path}" for path in self.parquet),
        ]


def report(
    source_dir: Path,
    out_html: Path,
    parquet_dir: Path | None = None,
    *,
    spark: SparkSession | None = None,
    scope: Scope = WHOLE,
    strict: bool = False,
) -> Summary:
    """Write the page to `out_html`, and return the key figures. Block.

    An old page is replaced, and missing directories are created. `source_dir` is a node's log
    directory, the directory of its metadata log, or that of a local cluster. If `parquet_dir` is
    given, write the tables behind the page there, before the page. They are those of the whole
    history, also with a `scope`. Tables that are written already stay after an error.

    Run in `spark`, or in a local session if it is None. Raise NoMetadataLog, OutOfHistory if no
    topic has a name of the scope, or NoJava if a local session cannot start. If `strict` is true,
    raise DamagedLog, NewerRecord or MissingBase in place of a report about a part of the log. Raise
    OSError if the page cannot be written. If a table cannot be written, Spark's exception is
    raised.
    """
    origin = logs_at([str(source_dir)])[0].origin
    # Without a meta.properties the id is the path of the log.
    cluster_id = None if origin.node_id is None else origin.cluster_id
    given = nullcontext(spark) if spark else local_session("quorate history report")
    with given as session, damage_said_plainly():
        log, of_partitions = _logs(session, source_dir, parquet_dir, scope, strict)
        tables = tables_of(log, of_partitions)
        written = (
            []
            if parquet_dir is None
            else write_parquet(tables.all(), parquet_dir, bytes_of(source_dir))
        )
        history = digest(
            session,
            log,
            tables,
            scope,
            of_partitions=of_partitions,
            source=str(source_dir),
            cluster_id=cluster_id,
        )
        warned = warning_lines(tables.warnings)
        for table in (*tables.all().values(), log, of_partitions):
            table.unpersist()
    out_html.parent.mkdir(parents=True, exist_ok=True)
    out_html.write_text(render(history), encoding="utf-8")
    return _summary(history, warned, out_html, written)


def _logs(
    spark: SparkSession, source: Path, parquet_dir: Path | None, scope: Scope, strict: bool
) -> tuple[DataFrame, DataFrame]:
    """Return the rows for all tables of the page, and those for its tables about partitions.

    They are the same, unless the page is about some topics and no tables of the whole history are
    written. Both are cached."""
    planned = PlannedLog(spark, source, strict=strict)
    topics = planned.topics(scope.topics) if scope.topics else None
    if topics is None or parquet_dir is not None:
        log = planned.rows(needs_of(*TABLES_OF_PAGE)).cache()
        return log, log
    others = [name for name in TABLES_OF_PAGE if name not in TABLES_OF_PARTITIONS]
    of_topics = planned.rows(needs_of(*TABLES_OF_PARTITIONS), topics=topics)
    return planned.rows(needs_of(*others)).cache(), of_topics.cache()


def write_parquet(tables: dict[str, DataFrame], parquet_dir: Path, log_bytes: int = 0) -> list[str]:
    """Write each table as Parquet into a directory of its name below `parquet_dir`, and replace the
    directory's old content. Return the paths of the directories.

    A table is one file, or several if `log_bytes`, the size of the log, is large. Raise Spark's
    exception if that fails."""
    written = []
    for name, table in tables.items():
        write(table, parquet_dir / name, "parquet", log_bytes)
        written.append(str(parquet_dir / name))
    return written


def _summary(
    history: History, warned: Sequence[str], out_html: Path, written: Sequence[str]
) -> Summary:
    return Summary(
        source=history.source,
        cluster_id=history.cluster_id,
        scope=history.scope,
        start_ms=history.start_ms,
        end_ms=history.end_ms,
        figures=history.figures,
        warnings=tuple(warned),
        html=str(out_html),
        parquet=tuple(written),
    )
