"""`quorate history stream`: Parquet tables that follow metadata logs while they grow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from quorate.cli.client.errors import Refused
from quorate.cli.client.options import format_option
from quorate.cli.parsing.described_argument import DescribedArgument
from quorate.cli.parsing.strict_command import StrictCommand
from quorate.cli.terminal.progress import waiting_until_closed
from quorate.cli.terminal.safe_text import echo
from quorate.quorum.analytics.log.errors import AnalyticsError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

POLL_S = 1

NAME = "quorate history stream"


@click.command(cls=StrictCommand)
@click.argument(
    "locations",
    metavar="DIR...",
    nargs=-1,
    required=True,
    cls=DescribedArgument,
    description="Directories of nodes or of local clusters, patterns, or URLs such as s3://...",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    help="The directory of the Parquet files. A later run continues it.",
)
@click.option(
    "--table",
    "tables",
    multiple=True,
    help="Keep this table current instead: leadership, isr, sessions or availability. May be "
    "repeated.",
)
@click.option("--once", is_flag=True, help="Stop at the present end of the logs.")
@click.option(
    "--interval",
    "interval_s",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="Seconds from the begin of one batch to the begin of the next one.",
)
@click.option(
    "--max-records",
    type=click.IntRange(min=1),
    default=1_000_000,
    show_default=True,
    help="The records of one batch. A metadata transaction is never divided.",
)
@format_option
def stream(
    locations: tuple[str, ...],
    out: Path,
    tables: tuple[str, ...],
    once: bool,
    interval_s: int,
    max_records: int,
    output: str,
) -> None:
    """Append each record of the metadata logs to a Parquet table, exactly once.

    DIR is the directory of a node or of a local cluster, a pattern, or a URL such as s3://... The
    table has a row for each record, with its cluster and node. The command prints a line for each
    batch, with the lag behind the logs in records, until it is interrupted.

    With --table, each batch updates these tables instead, and reads only its new records. The file
    _commit.json in the output directory names the folders with the rows of the last batch: final
    rows, and open rows that later records can end. `quorate.quorum.analytics.current_tables` reads
    them.

    If DIR covers all voters of a cluster, only committed records count."""
    from quorate.quorum.analytics.spark.session import local_session

    say = json_line if output == "json" else text_line
    try:
        with waiting_until_closed("starting Spark") as waiting, local_session(NAME) as spark:
            query = started(
                spark,
                locations,
                out,
                tables=tables,
                once=once,
                interval_s=interval_s,
                max_records=max_records,
            )
            waiting.close()
            for progress in batches_of(query):
                echo(say(progress | tables_in(out, progress)))
    except AnalyticsError as error:
        raise Refused(str(error)) from None


def started(
    spark: SparkSession,
    locations: tuple[str, ...],
    out: Path,
    *,
    tables: tuple[str, ...] = (),
    once: bool,
    interval_s: int,
    max_records: int,
) -> StreamingQuery:
    """Start the stream from the logs to the table of records, or to `tables`, and return it.

    Raise an AnalyticsError if a location cannot be read, or if `out` belongs to other tables."""
    from quorate.quorum.analytics.current.following import append_records, follow
    from quorate.quorum.analytics.log.files import absolute
    from quorate.quorum.analytics.log.places import logs_at

    logs_at(locations)
    places = [absolute(each) for each in locations]
    if tables:
        writer = follow(spark, places, out.absolute(), tables, max_records)
    else:
        writer = append_records(spark, places, out.absolute(), max_records)
    if once:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=f"{interval_s} seconds").start()


def batches_of(query: StreamingQuery) -> Iterator[dict[str, Any]]:
    """Yield a summary of each batch with records, until the stream ends. Stop it at the end.

    Raise an AnalyticsError if the stream ended because of one, and else the error of Spark."""
    from pyspark.errors import StreamingQueryException

    from quorate.quorum.analytics.log.errors import damage_said_plainly

    seen = -1
    try:
        while True:
            try:
                with damage_said_plainly():
                    ended = bool(query.awaitTermination(POLL_S))
            except StreamingQueryException as error:
                raise AnalyticsError(str(error).strip().splitlines()[0]) from None
            for progress in query.recentProgress:
                if progress["batchId"] > seen and progress["numInputRows"]:
                    seen = progress["batchId"]
                    yield summary_of(json.loads(progress.json))
            if ended:
                return
    finally:
        query.stop()


def summary_of(progress: dict[str, Any]) -> dict[str, Any]:
    """Return the batch, its records, and for each log the next offset and the lag in records."""
    (source,) = progress["sources"]
    ends, latest = _offsets(source["endOffset"]), _offsets(source.get("latestOffset"))
    return {
        "batch": progress["batchId"],
        "records": progress["numInputRows"],
        "duration_ms": progress["durationMs"].get("triggerExecution", 0),
        "logs": {
            name: {
                "next_offset": end["next"],
                "lag": max(latest.get(name, end)["next"] - end["next"], 0),
            }
            for name, end in sorted(ends.items())
        },
    }


def tables_in(out: Path, summary: dict[str, Any]) -> dict[str, Any]:
    """Return the rows of each table that the stream keeps current in `out`, and its lag in records.

    All tables have the lag of the batch, because each batch updates all of them."""
    from quorate.quorum.analytics.current.directory import committed

    lag = sum(log["lag"] for log in summary["logs"].values())
    tables = {
        name: {
            "final_rows": sum(part.rows for part in contents.final),
            "open_rows": sum(part.rows for part in contents.open),
            "lag": lag,
        }
        for name, contents in committed(out).tables.items()
    }
    return {"tables": tables} if tables else {}


def _offsets(stored: Any) -> dict[str, dict[str, int]]:
    offsets: dict[str, dict[str, int]] = json.loads(stored) if isinstance(stored, str) else stored
    return offsets or {}


def json_line(summary: dict[str, Any]) -> str:
    """Return the summary of a batch as one line of JSON."""
    return json.dumps(summary)


def text_line(summary: dict[str, Any]) -> str:
    """Return the summary of a batch as a line for people."""
    logs = ", ".join(
        f"{name} at offset {log['next_offset']}, lag {log['lag']}"
        for name, log in summary["logs"].items()
    )
    tables = "".join(
        f"; {name}: {table['final_rows']} final and {table['open_rows']} open rows"
        for name, table in summary.get("tables", {}).items()
    )
    took = summary["duration_ms"] / 1000
    return f"batch {summary['batch']}: {summary['records']} records in {took:.1f} s; {logs}{tables}"
