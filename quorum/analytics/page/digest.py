"""Reads the rows of the report's page from the tables. Spark counts all rows and chooses the worst
and the newest ones, so that the driver receives a bounded number of rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as f

from quorate.quorum.analytics.page.page_text import (
    INTERNAL,
    MAX_BOXES,
    MAX_EVENTS,
    MAX_LANES,
    MAX_WORST,
    Figures,
    History,
    Row,
)
from quorate.quorum.analytics.page.scope import Scope
from quorate.quorum.analytics.spark.remarks import REMARK
from quorate.quorum.analytics.tables.events import (
    PARTITION,
    as_of,
    ended_by_removal,
    in_order,
    with_durations,
)
from quorate.quorum.analytics.tables.isr import isr
from quorate.quorum.analytics.tables.leadership import availability_of, leadership
from quorate.quorum.analytics.tables.min_isr_windows import min_isr_windows
from quorate.quorum.analytics.tables.partition_states import partition_states
from quorate.quorum.analytics.tables.quorum import quorum
from quorate.quorum.analytics.tables.records import records, understood
from quorate.quorum.analytics.tables.sessions import sessions
from quorate.quorum.analytics.tables.warnings import ERROR, warnings

KEY = ("topic_id", "partition")
MIN_BOXES = 20
"""The number of spells that every lane shows, even if there are many lanes."""
WORST = ("leaderless_ms", "failing_ms", "leader_changes", "isr_shrinks")
"""The columns that order the partitions, the most important first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """The tables behind the page, cached. The rows are those of the whole history."""

    leadership: DataFrame
    isr: DataFrame
    sessions: DataFrame
    quorum: DataFrame
    min_isr_windows: DataFrame
    warnings: DataFrame

    def all(self) -> dict[str, DataFrame]:
        """Return the tables by name, and the table `availability`."""
        return {
            "leadership": self.leadership,
            "isr": self.isr,
            "sessions": self.sessions,
            "availability": availability_of(self.leadership),
            "min_isr_windows": self.min_isr_windows,
            "quorum": self.quorum,
            "warnings": self.warnings,
        }


TABLES_OF_PARTITIONS = ("leadership", "isr", "min_isr_windows")
TABLES_OF_PAGE = (*TABLES_OF_PARTITIONS, "sessions", "quorum", "warnings")
"""The names of the tables behind the page."""


def tables_of(log: DataFrame, of_partitions: DataFrame) -> Tables:
    """Return the tables, those about partitions from `of_partitions`. Nothing is read before a
    table is used."""
    effective, of_topics = understood(records(log)), understood(records(of_partitions))
    return Tables(
        leadership=leadership(of_topics).cache(),
        isr=isr(of_topics).cache(),
        sessions=sessions(effective).cache(),
        quorum=quorum(effective).cache(),
        min_isr_windows=min_isr_windows(of_topics).cache(),
        warnings=warnings(log).cache(),
    )


def digest(
    spark: SparkSession,
    log: DataFrame,
    tables: Tables,
    scope: Scope,
    *,
    of_partitions: DataFrame,
    source: str,
    cluster_id: str | None,
) -> History:
    """Return the rows to show. Run several Spark jobs, and block until they end.

    `of_partitions` has at least the records about partitions in the scope, as in `tables_of`."""
    effective, of_topics = understood(records(log)), understood(records(of_partitions))
    states = partition_states(of_topics)
    spells = scope.partitions(scope.clipped(tables.leadership), states).cache()
    windows = scope.partitions(scope.clipped(tables.min_isr_windows), states).cache()
    isr_spells = scope.partitions(scope.clipped(_isr_spells(tables.isr, of_topics)), states).cache()
    terms = scope.clipped(tables.quorum)
    served = scope.of_brokers(scope.clipped(_served(tables.sessions)))
    lanes = _lanes(spells, windows, isr_spells).cache()
    shown = _rows(lanes.orderBy(*_worst_first()).limit(MAX_LANES))
    per_lane = max(MAX_BOXES // max(len(shown), 1), MIN_BOXES)
    new_leaders, new_isrs = (_changes(each) for each in (spells, isr_spells))
    begin, end = _range(log, effective, scope)
    history = History(
        source=source,
        cluster_id=cluster_id,
        scope=scope.text(),
        start_ms=begin,
        end_ms=end,
        figures=_figures(log, lanes, windows, served, terms, tables.warnings),
        lanes=shown,
        leadership=_of_lanes(spark, spells, shown, per_lane, f.col("leader") >= 0),
        isr=_of_lanes(spark, isr_spells, shown, per_lane, ~_is_true("below_min")),
        new_leaders=_newest(new_leaders, "start_offset", MAX_EVENTS),
        new_isrs=_newest(new_isrs, "start_offset", MAX_EVENTS),
        outages=_rows(windows.orderBy(f.desc("duration_ms"), "start_offset").limit(MAX_WORST)),
        sessions=_newest(served, "newest_offset", MAX_EVENTS),
        quorum=_newest(terms, "start_offset", MAX_EVENTS),
        warnings=_rows(
            tables.warnings.orderBy(f.col("severity") != ERROR, "first_offset").limit(MAX_WORST)
        ),
    )
    for each in (spells, windows, isr_spells, lanes):
        each.unpersist()
    return history


def _isr_spells(changes: DataFrame, effective: DataFrame) -> DataFrame:
    """Return the table `isr` as intervals: each ISR lasts until the next one, or until the topic is
    removed."""
    order = in_order(*PARTITION).orderBy("start_offset")
    rows = (
        changes.drop("time", "topic")
        .withColumnsRenamed(
            {"offset": "start_offset", "timestamp_ms": "start_ms", "partition": "partition_id"}
        )
        .withColumn("end_offset", f.lead("start_offset").over(order))
        .withColumn("end_ms", f.lead("start_ms").over(order))
    )
    ended = with_durations(ended_by_removal(rows, effective), effective)
    return ended.withColumnRenamed("partition_id", "partition")


def _served(rows: DataFrame) -> DataFrame:
    """Return the table `sessions` with the columns of an interval, and the offset of its newest
    event."""
    return rows.withColumn("start_ms", f.coalesce("unfenced_ms", "registered_ms")).withColumn(
        "newest_offset", f.coalesce("end_offset", "unfenced_offset", "registered_offset")
    )


def _lanes(spells: DataFrame, windows: DataFrame, isr_spells: DataFrame) -> DataFrame:
    """Return one row per partition, with the figures that order the lanes."""
    changed = (f.col("began") == "changed").cast("int")
    per_partition = spells.groupBy(*KEY).agg(
        f.sum(changed).alias("leader_changes"),
        f.count("*").alias("spells"),
        f.max_by("end_ms", "start_offset").alias("gone_ms"),
    )
    failing = windows.groupBy(*KEY).agg(
        f.sum("duration_ms").alias("failing_ms"), f.count("*").alias("outages")
    )
    shrunk = changed * (f.size("removed") > 0).cast("int")
    shrinks = isr_spells.groupBy(*KEY).agg(f.sum(shrunk).alias("isr_shrinks"))
    joined = reduce(
        lambda rows, more: rows.join(more, [*KEY], "left"),
        (per_partition, failing, shrinks),
        availability_of(spells),
    )
    return joined.fillna(0, ["failing_ms", "outages", "isr_shrinks"])


def _worst_first() -> list[Column]:
    internal = f.coalesce(f.col("topic").startswith(INTERNAL), f.lit(False))
    return [*(f.desc(name) for name in WORST), internal, *map(f.col, ("topic", *KEY))]


def _of_lanes(
    spark: SparkSession, spells: DataFrame, lanes: list[Row], per_lane: int, sound: Column
) -> list[Row]:
    """Return the spells of the lanes, at most `per_lane` each: those that are not `sound`, and then
    the newest."""
    if not lanes:
        return []
    keys = spark.createDataFrame(
        [tuple(lane[name] for name in KEY) for lane in lanes], "topic_id string, partition int"
    )
    place = f.row_number().over(Window.partitionBy(*KEY).orderBy(sound, f.desc("start_offset")))
    chosen = spells.join(f.broadcast(keys), [*KEY], "left_semi").withColumn("place", place)
    return _rows(chosen.where(f.col("place") <= per_lane).orderBy("start_offset"))


def _changes(spells: DataFrame) -> DataFrame:
    """Return the spells that began with an event in the range."""
    return spells.where(f.col("began").isin("changed", "created"))


def _newest(rows: DataFrame, offset: str, maximum: int) -> list[Row]:
    """Return the newest rows, the oldest of them first."""
    return _rows(rows.orderBy(f.desc(offset)).limit(maximum))[::-1]


def _is_true(name: str) -> Column:
    return f.coalesce(f.col(name), f.lit(False))


def _range(log: DataFrame, effective: DataFrame, scope: Scope) -> tuple[int, int]:
    """Return the shown range in ms since 1970. It does not exceed that of the log."""
    # A snapshot of an empty log has no time.
    dated = log.where(f.col("timestamp_ms") > 0)
    first = dated.agg(f.min("timestamp_ms").alias("first_ms"))
    last = as_of(effective).agg(f.max("as_of_ms").alias("as_of_ms"))
    row = first.crossJoin(last).collect()[0]
    begin, end = row["first_ms"] or 0, row["as_of_ms"] or 0
    if scope.from_ms is not None:
        begin = max(begin, scope.from_ms)
    if scope.to_ms is not None:
        end = min(end, scope.to_ms)
    return begin, max(begin, end)


def _figures(
    log: DataFrame,
    lanes: DataFrame,
    windows: DataFrame,
    served: DataFrame,
    terms: DataFrame,
    warned: DataFrame,
) -> Figures:
    lost = f.col("leaderless_ms") > 0
    of_lanes = lanes.agg(
        f.count("*").alias("partitions"),
        *(f.sum(name).alias(name) for name in ("leader_changes", "isr_shrinks")),
        f.sum(lost.cast("int")).alias("without_leader"),
        f.max("longest_ms").alias("longest_ms"),
    )
    parts = (
        log.where(f.col("type") != REMARK).agg(f.count("*").alias("records")),
        windows.agg(f.count("*").alias("outages")),
        served.agg(f.count("*").alias("sessions")),
        terms.agg(f.count("*").alias("terms")),
        warned.agg(
            f.sum((f.col("severity") == ERROR).cast("int")).alias("errors"),
            f.sum((f.col("severity") != ERROR).cast("int")).alias("notes"),
        ),
    )
    row = reduce(DataFrame.crossJoin, parts, of_lanes).collect()[0]
    changes, shrinks = row["leader_changes"] or 0, row["isr_shrinks"] or 0
    return Figures(
        records=row["records"],
        partitions=row["partitions"],
        leader_changes=changes,
        isr_shrinks=shrinks,
        partitions_without_leader=row["without_leader"] or 0,
        longest_without_leader_ms=row["longest_ms"] or 0,
        outages=row["outages"],
        sessions=row["sessions"],
        terms=row["terms"],
        errors=row["errors"] or 0,
        notes=row["notes"] or 0,
    )


def _rows(table: DataFrame) -> list[Row]:
    return [row.asDict(recursive=True) for row in table.collect()]
