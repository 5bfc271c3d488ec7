"""The history of a cluster, read from its metadata log: leaders, ISRs, brokers, topics and configs.

Decisions:

- The metadata log is the only input. The package reads the logs of Quorate and of Apache Kafka (3.3
  to 4.x), whether the node runs or not. It does not change the log.
- The tables are computed with Spark. A time travel query and the story of one partition replay the
  log in one process, without Spark.
- Spark's tasks decode the log. The driver reads only the headers of batches.
- Only records that took effect count. The records of an aborted or unfinished metadata transaction
  are left out (KIP-868).
- Apache Kafka's log does not name causes. The story infers them where only one cause is possible,
  and marks them as inferred.
- The functions without Spark raise DamagedLog for damage. With `found`, they call it for each
  damage, and answer from the rest of the log.
- Importing this package is cheap. Functions that need Spark import it when they are called. Spark
  comes with `pip install 'quorate[spark]'`.

Input: directories of metadata logs, also of many clusters and on other filesystems. Outputs:
DataFrames, temporary views, Parquet files, streams, one HTML page, or objects in Python.

Folders in reading order; each imports only those before it:

- `archives/`: safe extraction of archives.
- `log/`: the log, cut into slices or read record by record; the exceptions.
- `replay/`: the cluster at one time; the stories of partitions, topics, brokers and the quorum.
- `rehearsal/`: scenarios of faults, played on the cluster of one moment.
- `spark/`: the Spark data source `quorate.metadata` and a local Spark session.
- `tables/`: the tables.
- `current/`: tables that a stream keeps current.
- `page/`: the report.
- `job.py`: a job for a Spark cluster.

Sources: KIP-630 (snapshots), KIP-631 (metadata records), KIP-868 (metadata transactions), KIP-966
(eligible leader replicas).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.quorum.analytics.log.damage import Damage, Found, refuse
from quorate.quorum.analytics.log.errors import (
    AnalyticsError,
    BadOption,
    DamagedLog,
    NoJava,
    NoMetadataLog,
    OutOfHistory,
    WorkersLack,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from quorate.quorum.analytics.page.report import Summary
    from quorate.quorum.analytics.rehearsal.assumptions import Assumptions
    from quorate.quorum.analytics.rehearsal.outcome import Rehearsal
    from quorate.quorum.analytics.replay.chronicle import Chronicle
    from quorate.quorum.analytics.replay.differences import Comparison, Point
    from quorate.quorum.analytics.replay.moment import Moment
    from quorate.quorum.analytics.replay.story import Stories
    from quorate.quorum.analytics.replay.what_if import WhatIf
    from quorate.quorum.analytics.tables import Source

__all__ = [
    "AnalyticsError",
    "BadOption",
    "Damage",
    "DamagedLog",
    "NoJava",
    "NoMetadataLog",
    "OutOfHistory",
    "WorkersLack",
    "at",
    "brokers_in_racks",
    "current_tables",
    "diff",
    "each_broker",
    "explain",
    "explain_broker",
    "explain_quorum",
    "explain_topic",
    "read_tables",
    "register",
    "rehearse",
    "top",
    "views",
    "what_if",
    "write_report",
]


def register(spark: SparkSession) -> None:
    """Register the data source, so that `spark.read.format("quorate.metadata").load(DIR)` works.

    The options are described in `spark/source.py`. If the master is local and the user chose no
    interpreter, Spark's Python workers get the one of this process. Otherwise the first call in a
    session runs one task. Raise WorkersLack if the workers cannot import this package."""
    from quorate.quorum.analytics.spark.registration import register as register_source

    register_source(spark)


def views(
    spark: SparkSession,
    source: Source,
    *,
    used_by: str = "",
    topics: Collection[str] = (),
    strict: bool = False,
) -> list[str]:
    """Register the tables of the metadata logs at `source` as temporary views, and return their
    names.

    If `used_by` is a query, register only the tables that it names. Nothing is read before a view
    is used. `topics`, `strict` and the errors are those of `read_tables`."""
    from quorate.quorum.analytics.tables import views as register_views

    return register_views(spark, source, used_by=used_by, topics=topics, strict=strict)


def read_tables(
    spark: SparkSession,
    source: Source,
    *,
    only: Collection[str] = (),
    topics: Collection[str] = (),
    strict: bool = False,
) -> dict[str, DataFrame]:
    """Return the tables of the metadata logs at `source` as DataFrames, by name: those in `only`,
    or all of them if it is empty.

    Name the tables that you use: only their record types and columns are decoded. Nothing is read
    before a table is used. Raise NoMetadataLog if a location holds no metadata log.

    With `topics`, tables with rows about topics have only the rows about topics of these names, and
    the records of other topics are not decoded for them. The other tables are about the whole
    cluster and remain complete. This call then reads the names of all topics. Raise OutOfHistory if
    no topic has one of the names.

    The table `warnings` describes what could not be read. If `strict` is true, the use of a table
    fails with an error of Spark instead."""
    from quorate.quorum.analytics.tables import read_tables as make

    return make(spark, source, only=only, topics=topics, strict=strict)


def current_tables(spark: SparkSession, out: Path | str) -> dict[str, DataFrame]:
    """Return the tables that `quorate history stream --table` keeps current in `out`, by name.

    They are those of the last committed batch. Use them before the stream has committed two more
    batches, because it removes the files of older ones. Raise BadOption if there are none."""
    from quorate.quorum.analytics.current.following import current_tables as read

    return read(spark, out)


def write_report(
    source_dir: Path,
    out_html: Path,
    parquet_dir: Path | None = None,
    *,
    from_ms: int | None = None,
    to_ms: int | None = None,
    topics: Iterable[str] = (),
    brokers: Iterable[int] = (),
    spark: SparkSession | None = None,
    strict: bool = False,
) -> Summary:
    """Write one self-contained HTML page, as `quorate history report` does. If `parquet_dir` is
    given, also write the tables that the page shows, as Parquet.

    The page shows the range from `from_ms` to before `to_ms`, in ms since 1970, the topics, and the
    brokers with the partitions that they ever had a replica of. The default is everything.

    Use `spark`, or a local session if it is None. Raise an AnalyticsError if the log is missing, or
    if there is no usable Java, and BadOption if the range is empty. Damage is described in the page
    and in the summary, or raises an AnalyticsError if `strict` is true."""
    from quorate.quorum.analytics.page.report import report as run
    from quorate.quorum.analytics.page.scope import Scope

    if from_ms is not None and to_ms is not None and to_ms <= from_ms:
        raise BadOption(f"to_ms, {to_ms}, must be later than from_ms, {from_ms}")
    scope = Scope(from_ms=from_ms, to_ms=to_ms, topics=(*topics,), brokers=(*brokers,))
    return run(source_dir, out_html, parquet_dir, spark=spark, scope=scope, strict=strict)


def top(spark: SparkSession, source: Source, rows: int = 10) -> dict[str, DataFrame]:
    """Return rankings of partitions and brokers by name, each with at most `rows` rows.

    Nothing is read before a ranking is used. Raise NoMetadataLog if a location holds no metadata
    log."""
    from quorate.quorum.analytics.tables import read_tables as make
    from quorate.quorum.analytics.tables.top import NEEDED
    from quorate.quorum.analytics.tables.top import top as rank

    return rank(make(spark, source, only=NEEDED), rows)


def at(
    directory: Path | str,
    *,
    offset: int | None = None,
    time_ms: int | None = None,
    topics: Iterable[str] = (),
    partitions: Iterable[int] = (),
    brokers: Iterable[int] = (),
    found: Found = refuse,
) -> Moment:
    """Return the cluster after the record at `offset`, at a time in ms since 1970, or at the end of
    the log. No Spark is needed.

    With `topics`, with `partitions` of these topics or with `brokers`, return only this part
    (`replay/part.py`). Errors are those of `diff`. Also raise OutOfHistory if a named object does
    not exist then, and BadOption for partitions without a topic."""
    from quorate.quorum.analytics.replay.moment import Part, moment
    from quorate.quorum.analytics.replay.part import part_of

    part = Part(topics=(*topics,), partitions=(*partitions,), brokers=(*brokers,))
    return part_of(moment(directory, offset=offset, time_ms=time_ms, found=found), part)


def explain(
    directory: Path | str, topic: str, partition: int | None = None, *, found: Found = refuse
) -> Stories:
    """Return the stories of the partitions of a topic, or of one of them. No Spark is needed.

    Raise NoMetadataLog or DamagedLog, or OutOfHistory if the log does not know the partition."""
    from quorate.quorum.analytics.replay.story import explain as tell

    return tell(directory, topic, partition, found=found)


def explain_topic(directory: Path | str, topic: str, *, found: Found = refuse) -> list[Chronicle]:
    """Return the stories of all topics of this name. Errors are those of `explain`."""
    from quorate.quorum.analytics.replay.topic_story import explain_topic as tell

    return tell(directory, topic, found=found)


def explain_broker(directory: Path | str, broker_id: int, *, found: Found = refuse) -> Chronicle:
    """Return the story of a broker. Errors are those of `explain`."""
    from quorate.quorum.analytics.replay.broker_story import explain_broker as tell

    return tell(directory, broker_id, found=found)


def explain_quorum(directory: Path | str, *, found: Found = refuse) -> Chronicle:
    """Return the story of the quorum of controllers. Errors are those of `explain`."""
    from quorate.quorum.analytics.replay.quorum_story import explain_quorum as tell

    return tell(directory, found=found)


def diff(
    directory: Path | str, before: Point, after: Point, *, found: Found = refuse
) -> Comparison:
    """Return what differs between two points of the history in `directory`. No Spark is needed.

    Raise NoMetadataLog or DamagedLog, or OutOfHistory if the log does not hold a point."""
    from quorate.quorum.analytics.replay.differences import diff as compare

    return compare(directory, before, after, found=found)


def what_if(
    directory: Path | str,
    lost: Iterable[int] = (),
    *,
    racks: Collection[str] = (),
    offset: int | None = None,
    time_ms: int | None = None,
    found: Found = refuse,
) -> WhatIf:
    """Return the effect of the loss of these brokers, and of all brokers in these racks, at an
    offset, at a time in ms since 1970, or at the end of the log. No Spark is needed.

    Raise BadOption if no broker is in one of the racks. Other errors are those of `diff`."""
    from quorate.quorum.analytics.replay.moment import moment
    from quorate.quorum.analytics.replay.what_if import what_if as compute

    at = moment(directory, offset=offset, time_ms=time_ms, found=found)
    return compute(at, {*lost, *brokers_in_racks(at, racks)})


def brokers_in_racks(at: Moment, racks: Collection[str]) -> list[int]:
    """Return the sorted ids of the brokers in these racks at a moment. Raise BadOption if no broker
    is in one of the racks."""
    from quorate.quorum.analytics.replay.what_if import brokers_in_racks as find

    for rack in racks:
        if not find(at.image, (rack,)):
            raise BadOption(f"no broker is in the rack {rack} at this point of the history")
    return find(at.image, racks)


def rehearse(
    directory: Path | str,
    scenario: str,
    seeds: Iterable[int] = range(1, 21),
    *,
    offset: int | None = None,
    time_ms: int | None = None,
    brokers: Sequence[int] = (),
    racks: Sequence[str] = (),
    assumptions: Assumptions | None = None,
    found: Found = refuse,
) -> Rehearsal:
    """Play a scenario on the metadata of a real cluster, once for each seed, and return the
    outcomes with their spread. No Spark is needed.

    The moment is that of `what_if`, and `analytics/rehearsal` says what is modelled. Without
    `brokers` and `racks`, each seed chooses. Raise BadOption if the scenario, an active broker or a
    rack with one does not exist. Other errors are those of `diff`."""
    from quorate.quorum.analytics.rehearsal.assumptions import Assumptions as Assumed
    from quorate.quorum.analytics.rehearsal.rehearse import rehearse as play
    from quorate.quorum.analytics.replay.moment import moment

    at = moment(directory, offset=offset, time_ms=time_ms, found=found)
    assumed = Assumed() if assumptions is None else assumptions
    return play(at, scenario, [*seeds], brokers=brokers, racks=racks, assumptions=assumed)


def each_broker(
    directory: Path | str,
    *,
    offset: int | None = None,
    time_ms: int | None = None,
    found: Found = refuse,
) -> list[WhatIf]:
    """Return the effect of the loss of each single active broker, the worst first. The arguments
    are those of `what_if`."""
    from quorate.quorum.analytics.replay.moment import moment
    from quorate.quorum.analytics.replay.what_if import each_broker as compute

    return compute(moment(directory, offset=offset, time_ms=time_ms, found=found))
