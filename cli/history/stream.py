"""`quorate history stream`: a Parquet table that follows metadata logs while they grow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from quorate.cli.client.errors import Refused
from quorate.cli.client.options import format_option
from quorate.quorum.analytics.log.errors import AnalyticsError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

CHECKPOINT = "_checkpoint"
"""The directory of the stream's offsets, inside of the table. Readers of Parquet ignore it."""
POLL_S = 1


@click.command()
@click.argument("locations", metavar="DIR...", nargs=-1, required=True)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    help="The directory of the Parquet table. A later run continues it.",
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
    once: bool,
    interval_s: int,
    max_records: int,
    output: str,
) -> None:
    """Append each record of the metadata logs to a Parquet table, exactly once.

    DIR is the directory of a node or of a local cluster, a pattern, or a URL such as s3://... The
    table has a row for each record, with its cluster and node. The command prints a line for each
    batch, with the lag behind the logs in records, until it is interrupted.

    If DIR covers all voters of a cluster, only committed records are appended."""
    from quorate.quorum.analytics.spark.session import local_session

    say = json_line if output == "json" else text_line
    try:
        with local_session("quorate history stream") as spark:
            query = started(
                spark, locations, out, once=once, interval_s=interval_s, max_records=max_records
            )
            for progress in batches_of(query):
                click.echo(say(progress))
    except AnalyticsError as error:
        raise Refused(str(error)) from None


def started(
    spark: SparkSession,
    locations: tuple[str, ...],
    out: Path,
    *,
    once: bool,
    interval_s: int,
    max_records: int,
) -> StreamingQuery:
    """Start the stream from the logs to the table, and return it.

    Raise an AnalyticsError if a location cannot be read."""
    from quorate.quorum.analytics.log.files import absolute
    from quorate.quorum.analytics.log.places import logs_at

    logs_at(locations)
    paths = json.dumps([absolute(each) for each in locations])
    rows = (
        spark.readStream.format("quorate.metadata")
        .options(paths=paths, maxRecordsPerBatch=str(max_records))
        .load()
    )
    writer = (
        rows.writeStream.format("parquet")
        .option("path", str(out.absolute()))
        .option("checkpointLocation", str(out.absolute() / CHECKPOINT))
    )
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
    took = summary["duration_ms"] / 1000
    return f"batch {summary['batch']}: {summary['records']} records in {took:.1f} s; {logs}"
