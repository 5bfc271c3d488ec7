"""The registry of the history tables, and functions that register them in Spark.

Every table is a function of the table `records`. Only `warnings` is one of the data source.
Rules that hold for all tables:

- Intervals are half open. `end_*` is null while the interval lasts, and `duration_ms` then counts
  up to the timestamp of the last record, unless this time has not come yet (`log/clocks.py`).
- If the log begins with a snapshot, earlier changes are not known. Topics, leader epochs, configs
  and sessions that the snapshot holds begin at the snapshot's last offset.
- `cause` is "unknown" if the log does not name a cause. Apache Kafka's logs never do.
- The docstring of each table function lists its columns with their types. A test compares them.

Files in reading order: `events.py`, `partition_states.py`, `min_isr.py`, `replica_runs.py`; then
one file per table, with its name. `leadership.py` has `availability` too, `isr.py` has `elr`, and
`topics.py` has `partitions`. `needs.py` has the record types and columns that each table is made
of, `of_topics.py` the rows about some topics, `descriptions.py` the texts of columns,
`warning_lines.py` the lines of warnings, and `writing.py` the files of tables.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from quorate.quorum.analytics.log.clocks import latest_times
from quorate.quorum.analytics.log.errors import OutOfHistory
from quorate.quorum.analytics.log.files import absolute
from quorate.quorum.analytics.log.plan import Choice
from quorate.quorum.analytics.log.plan_text import decoded
from quorate.quorum.analytics.spark.columns import COLUMNS
from quorate.quorum.analytics.spark.options import TOPIC_IDS, TYPES
from quorate.quorum.analytics.spark.planning import plan
from quorate.quorum.analytics.spark.registration import register
from quorate.quorum.analytics.spark.session import divide_shuffles
from quorate.quorum.analytics.spark.source import NAME
from quorate.quorum.analytics.tables.brokers import brokers
from quorate.quorum.analytics.tables.causes import causes
from quorate.quorum.analytics.tables.churn import churn
from quorate.quorum.analytics.tables.configs import configs
from quorate.quorum.analytics.tables.descriptions import (
    ColumnText,
    columns_of,
    of_records,
    with_comments,
)
from quorate.quorum.analytics.tables.events import with_latest
from quorate.quorum.analytics.tables.isr import elr, isr
from quorate.quorum.analytics.tables.leadership import availability, leadership
from quorate.quorum.analytics.tables.min_isr_windows import min_isr_windows
from quorate.quorum.analytics.tables.needs import NAMES_OF_TOPICS, Needs, needs_of
from quorate.quorum.analytics.tables.of_topics import CONDITIONS, Topics, topics_in
from quorate.quorum.analytics.tables.quorum import quorum
from quorate.quorum.analytics.tables.quorum_health import quorum_health
from quorate.quorum.analytics.tables.reassignment_steps import reassignment_steps
from quorate.quorum.analytics.tables.reassignments import reassignments
from quorate.quorum.analytics.tables.records import records, understood
from quorate.quorum.analytics.tables.sessions import sessions
from quorate.quorum.analytics.tables.state_changes import state_changes
from quorate.quorum.analytics.tables.topics import partitions, topics
from quorate.quorum.analytics.tables.warnings import warnings


@dataclass(frozen=True, slots=True)
class Table:
    """One table: its function, and the columns that identify its rows."""

    make: Callable[[DataFrame], DataFrame]
    """Makes the table from the records that took effect and that this version can read."""
    order: tuple[str, ...]
    """Columns that identify a row of one cluster and give a useful order."""
    of_log: bool = False
    """True if the table is made from all rows of the data source."""


TABLES: dict[str, Table] = {
    "records": Table(records, ("offset", "snapshot_index"), of_log=True),
    "topics": Table(topics, ("created_offset", "topic_id")),
    "partitions": Table(partitions, ("topic", "topic_id", "partition")),
    "leadership": Table(leadership, ("start_offset", "topic_id", "partition")),
    "isr": Table(isr, ("offset", "topic_id", "partition")),
    "elr": Table(elr, ("offset", "topic_id", "partition")),
    "state_changes": Table(state_changes, ("offset", "topic_id", "partition")),
    "sessions": Table(sessions, ("registered_offset", "unfenced_offset", "broker")),
    "availability": Table(availability, ("topic", "topic_id", "partition")),
    "min_isr_windows": Table(min_isr_windows, ("start_offset", "topic_id", "partition")),
    "churn": Table(churn, ("topic", "topic_id", "partition", "broker")),
    "reassignments": Table(reassignments, ("start_offset", "topic_id", "partition")),
    "reassignment_steps": Table(
        reassignment_steps, ("start_offset", "topic_id", "partition", "broker")
    ),
    "brokers": Table(brokers, ("broker",)),
    "configs": Table(configs, ("start_offset", "resource_type", "resource_name", "name")),
    "quorum": Table(quorum, ("start_offset",)),
    "quorum_health": Table(quorum_health, ("epoch",)),
    "causes": Table(causes, ("offset", "topic_id", "partition", "broker")),
    "warnings": Table(warnings, ("first_offset", "kind", "type"), of_log=True),
}
"""All tables by name."""


Source = Path | str | Sequence[Path | str]
"""A location of metadata logs, or several ones (`analytics/log/places.py`)."""


class PlannedLog:
    """The logs at some locations, planned once. All its DataFrames have the same records.

    The plan is made by the constructor, which reads the headers of all batches, in tasks if a log
    is large. Raise NoMetadataLog if a location holds no
    metadata log."""

    def __init__(self, spark: SparkSession, source: Source, *, strict: bool = False) -> None:
        given = (source,) if isinstance(source, Path | str) else source
        # Spark's workers may have another working directory.
        self._locations = [absolute(str(each)) for each in given]
        self._spark, self._strict = spark, strict
        register(spark)
        choice = Choice(locations=tuple(self._locations), include="base", strict=strict)
        planned = plan(spark, choice)
        slices = decoded(planned) if planned else []
        divide_shuffles(spark, sum(piece.end - piece.start for piece in slices))
        self._latest_ms = latest_times(slices)
        self._options = {
            "include": "base",
            "mode": "strict" if strict else "permissive",
            "plan": planned,
        }

    def rows(
        self, needs: Needs | None = None, *, json: bool = False, topics: Topics | None = None
    ) -> DataFrame:
        """Return the rows of the data source that are the whole known history of all clusters.

        They include records that had no effect; the column `effective` is false for these, and for
        rows about damage. `json` fills the column `record`. With `needs`, only its columns are
        there, and rows of other types may be missing. With `topics`, records of other topics may be
        missing too. In strict mode, damage is an error of Spark
        when rows are used, and records of all types are decoded.

        If a log ends with times that have not come yet, the rows also have the column LATEST,
        unless `json` asks for the records as they are."""
        reader = self._spark.read.format(NAME).options(json=str(json).lower(), **self._options)
        if needs is not None:
            reader = reader.schema(needs.schema())
            if needs.types is not None and not self._strict:
                reader = reader.option(TYPES, ",".join(sorted(needs.types)))
        if topics is not None and not self._strict:
            reader = reader.option(TOPIC_IDS, topics.option())
        rows = reader.load(self._locations)
        return rows if json else with_latest(rows, self._latest_ms)

    def topics(self, names: Collection[str]) -> Topics:
        """Return the topics with these names (`of_topics.py`). Block for a job of Spark.

        Raise OutOfHistory if the logs have no topic with any of these names."""
        found = topics_in(self.rows(NAMES_OF_TOPICS), names)
        if not found.ids:
            raise OutOfHistory(f"these logs have no topic {' or '.join(sorted(names))}")
        return found


def read_log(
    spark: SparkSession,
    source: Source,
    *,
    needs: Needs | None = None,
    json: bool = False,
    strict: bool = False,
) -> DataFrame:
    """Return the rows of the logs at `source` (`PlannedLog`).

    The rows are those of the logs at this call, also if a query runs later."""
    return PlannedLog(spark, source, strict=strict).rows(needs, json=json)


def read_tables(
    spark: SparkSession,
    source: Source,
    *,
    only: Collection[str] = (),
    topics: Collection[str] = (),
    strict: bool = False,
) -> dict[str, DataFrame]:
    """Return all tables, or those in `only`, by name.

    Names in `only` that are no tables are ignored. The tables are lazy: nothing is read before a
    table is used. The first use decodes the record types and columns that the tables of this call
    need, and caches them for all tables but `records`. A call for one table is thus much cheaper
    than one for all. All tables have the same records of a log that is in use.

    With `topics`, tables with rows about topics have only the rows about topics of these names. The
    records of other topics are not decoded for them. The ids of the topics are read by this call.
    Tables about the whole cluster remain complete (`of_topics.py`).

    Raise NoMetadataLog if a location holds no metadata log, and OutOfHistory if no topic has one of
    the names. The table `warnings` describes what could not be read. If `strict` is true, the use
    of a table fails instead: Spark's error then wraps a DamagedLog, NewerRecord or MissingBase
    (`damage_said_plainly`)."""
    wanted = [name for name in TABLES if not only or name in only]
    planned = PlannedLog(spark, source, strict=strict)
    about = planned.topics(topics) if topics and any(map(CONDITIONS.get, wanted)) else None
    of_topics = [name for name in wanted if about is not None and name in CONDITIONS]
    made = _made(planned, [name for name in wanted if name not in of_topics])
    if about is not None:
        for name, table in _made(planned, of_topics, about).items():
            made[name] = table.where(CONDITIONS[name](about))
    return {name: with_comments(made[name], columns_in(name)) for name in wanted}


def _made(
    planned: PlannedLog, names: Sequence[str], topics: Topics | None = None
) -> dict[str, DataFrame]:
    """Return these tables. One decoding of the log serves all of them but `records`."""
    if not names:
        return {}
    log = planned.rows(needs_of(*names), topics=topics).cache()
    effective = understood(records(log))
    made = {name: TABLES[name].make(log if TABLES[name].of_log else effective) for name in names}
    if "records" in made:
        made["records"] = records(planned.rows(json=True, topics=topics))
    return made


def columns_in(name: str) -> list[ColumnText]:
    """Return the columns of a table with their types and texts."""
    return of_records(COLUMNS) if name == "records" else columns_of(TABLES[name].make)


def views(
    spark: SparkSession,
    source: Source,
    *,
    used_by: str = "",
    topics: Collection[str] = (),
    strict: bool = False,
) -> list[str]:
    """Register tables as temporary views of `spark` under their names, and return the names.

    Planning all tables takes a while. If `used_by` is a query that names tables, only those tables
    are registered. `topics` and errors are those of `read_tables`."""
    named = {name for name in TABLES if re.search(rf"\b{name}\b", used_by, re.IGNORECASE)}
    made = read_tables(spark, source, only=named, topics=topics, strict=strict)
    for name, table in made.items():
        table.createOrReplaceTempView(name)
    return list(made)
