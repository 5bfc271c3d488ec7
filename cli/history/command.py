"""`quorate history`: questions to a metadata log. `at` and `explain` need no Spark.

`questions.py` has more of its commands."""

from __future__ import annotations

import json
from dataclasses import asdict
from itertools import chain
from pathlib import Path

import click

from quorate.cli.client.options import format_option
from quorate.cli.history.explain import explain
from quorate.cli.history.options import (
    damages,
    moment_ms,
    permissive_option,
    print_warnings,
    strict_option,
)
from quorate.cli.history.questions import diff, top, whatif
from quorate.cli.history.source import directory_argument, history_in
from quorate.cli.history.stream import stream
from quorate.cli.history.text import json_lines, moment_lines, shown_lines
from quorate.cli.parsing.described_argument import DescribedArgument
from quorate.cli.parsing.suggesting_group import SuggestingGroup
from quorate.cli.terminal.progress import waiting_for, waiting_until_closed
from quorate.cli.terminal.safe_text import echo, echo_drawn

EXPORTS = ("parquet", "json", "csv")

of_topics_option = click.option(
    "--topic",
    "topics",
    multiple=True,
    help="Only the rows about this topic, in tables with rows about topics. May be repeated.",
)


@click.group(cls=SuggestingGroup)
def history() -> None:
    """Show leaderships, ISR changes, sessions, unavailability and their causes.

    DIR is a node's data directory (Quorate's or Apache Kafka's), the directory of a cluster of
    `quorate up`, a metadata log, or a .tar.gz or .zip of one of these. The nodes may run meanwhile.
    `at`, `explain`, `diff` and `whatif` need no Java. The others run Spark (quorate[spark]).

    \b
    quorate history report quorate-data --out report.html
    quorate history explain quorate-data --topic orders --partition 0
    quorate history at quorate-data --time 2026-01-31T23:59:59"""


@history.command()
@directory_argument
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    default="report.html",
    show_default=True,
    help="The file of the page.",
)
@click.option(
    "--parquet",
    type=click.Path(file_okay=False, path_type=Path),
    help="Also write the tables to this directory, as Parquet.",
)
@click.option("--from", "from_ms", callback=moment_ms, help="Begin at this time, as in `at`.")
@click.option("--to", "to_ms", callback=moment_ms, help="End before this time.")
@click.option("--topic", "topics", multiple=True, help="Only this topic. May be repeated.")
@click.option(
    "--broker",
    "brokers",
    multiple=True,
    type=click.IntRange(min=0),
    help="Only this broker and the partitions that it ever had a replica of. May be repeated.",
)
@strict_option
@format_option
def report(
    directory: Path,
    out: Path,
    parquet: Path | None,
    from_ms: int | None,
    to_ms: int | None,
    topics: tuple[str, ...],
    brokers: tuple[int, ...],
    strict: bool,
    output: str,
) -> None:
    """Write one self-contained HTML page about the history of the cluster.

    The page shows the worst and the newest rows first, and says what it leaves out. The key figures
    count everything."""
    from quorate.quorum.analytics.page.report import report as write_report
    from quorate.quorum.analytics.page.scope import Scope

    if from_ms is not None and to_ms is not None and to_ms <= from_ms:
        raise click.UsageError("--to must be later than --from")
    scope = Scope(from_ms=from_ms, to_ms=to_ms, topics=topics, brokers=brokers)
    with (
        waiting_for("writing the report with Spark"),
        history_in(directory, all_nodes=True) as source,
    ):
        summary = write_report(source, out, parquet, scope=scope, strict=strict)
    for line in summary.warnings:
        echo(line, err=True)
    if output == "json":
        echo(json.dumps(asdict(summary)))
        return
    for line in summary.lines():
        echo(line)


@history.command()
@click.argument(
    "query", cls=DescribedArgument, description="A SELECT or DESCRIBE statement of Spark SQL."
)
@directory_argument
@of_topics_option
@strict_option
@format_option
def sql(query: str, directory: Path, topics: tuple[str, ...], strict: bool, output: str) -> None:
    """Print the result of a Spark SQL query over the tables of DIR.

    With --topic, records of other topics are not decoded, which is faster than a condition in the
    query. Tables about the whole cluster, such as sessions and warnings, remain complete.

    `DESCRIBE TABLE leadership` explains a table's columns. Warnings about the log are printed on
    standard error. The tables are records, topics, partitions, leadership, isr, elr,
    state_changes, sessions, availability, min_isr_windows, churn, reassignments,
    reassignment_steps, brokers, configs, quorum, quorum_health, causes and warnings."""
    from pyspark.errors import AnalysisException

    from quorate.quorum.analytics.log.errors import damage_said_plainly
    from quorate.quorum.analytics.spark.session import local_session
    from quorate.quorum.analytics.tables import views

    with (
        waiting_until_closed("running the query with Spark") as waiting,
        history_in(directory, all_nodes=True) as source,
        local_session("quorate history sql") as spark,
    ):
        try:
            views(spark, source, used_by=f"{query} warnings", topics=topics, strict=strict)
            with damage_said_plainly():
                result = spark.sql(query)
                # The rows of one of Spark's partitions at a time are in memory.
                rows = (row.asDict(recursive=True) for row in result.toLocalIterator())
                lines = json_lines(rows) if output == "json" else shown_lines(result.columns, rows)
                first = next(lines)
                waiting.close()
                for line in chain([first], lines):
                    echo_drawn(line)
                print_warnings(spark.table("warnings"))
        except AnalysisException as error:
            raise click.UsageError(str(error).strip().splitlines()[0]) from None


@history.command()
@directory_argument
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    help="The directory that receives one directory per table. Existing tables are replaced.",
)
@click.option("--table", "wanted", multiple=True, help="Write only this table. May be repeated.")
@click.option(
    "--format",
    "kind",
    type=click.Choice(EXPORTS),
    default="parquet",
    show_default=True,
    help="Format of the files.",
)
@of_topics_option
@strict_option
def export(
    directory: Path,
    out: Path,
    wanted: tuple[str, ...],
    kind: str,
    topics: tuple[str, ...],
    strict: bool,
) -> None:
    """Write the tables of DIR as files. CSV files contain lists as JSON.

    With --topic, tables about the whole cluster, such as sessions and warnings, remain complete.

    A table is one file. If the logs in DIR exceed 64 MiB, a large table is several files."""
    from quorate.quorum.analytics.log.errors import damage_said_plainly
    from quorate.quorum.analytics.spark.session import local_session
    from quorate.quorum.analytics.tables import TABLES, read_tables
    from quorate.quorum.analytics.tables.writing import bytes_of, flat, write

    unknown = [name for name in wanted if name not in TABLES]
    if unknown:
        raise click.UsageError(f"--table: value {unknown[0]!r} must be one of {', '.join(TABLES)}")
    paths = []
    with (
        waiting_for("exporting tables with Spark"),
        history_in(directory, all_nodes=True) as source,
        local_session("quorate history export") as spark,
        damage_said_plainly(),
    ):
        needed = (*wanted, "warnings") if wanted else ()
        tables = read_tables(spark, source, only=needed, topics=topics, strict=strict)
        log_bytes = bytes_of(source)
        for name in wanted or tables:
            paths.append(out / name)
            table = flat(tables[name]) if kind == "csv" else tables[name]
            write(table, out / name, kind, log_bytes)
        print_warnings(tables["warnings"])
    for path in paths:
        echo(str(path))


@history.command()
@directory_argument
@click.option(
    "--offset", type=click.IntRange(min=0), help="The state after the record at this offset."
)
@click.option(
    "--time",
    "time_ms",
    callback=moment_ms,
    help="The state at this time: ISO 8601 (UTC), or ms since 1970.",
)
@click.option("--topic", "topics", multiple=True, help="Only this topic. May be repeated.")
@click.option(
    "--partition",
    "partitions",
    multiple=True,
    type=click.IntRange(min=0),
    help="Only this partition of --topic. May be repeated.",
)
@click.option(
    "--broker",
    "brokers",
    multiple=True,
    type=click.IntRange(min=0),
    help="Only this broker and the partitions that it has a replica of. May be repeated.",
)
@permissive_option
@format_option
def at(
    directory: Path,
    offset: int | None,
    time_ms: int | None,
    topics: tuple[str, ...],
    partitions: tuple[int, ...],
    brokers: tuple[int, ...],
    permissive: bool,
    output: str,
) -> None:
    """Print the state of the cluster at an offset or time of its metadata log.

    With --topic or --broker, quotas, credentials and ACLs are left out."""
    from quorate.quorum.analytics.replay.moment import Part, moment
    from quorate.quorum.analytics.replay.moment_json import as_json
    from quorate.quorum.analytics.replay.part import part_of

    if offset is not None and time_ms is not None:
        raise click.UsageError("only one of --offset and --time can be given")
    if partitions and not topics:
        raise click.UsageError("--partition needs --topic")
    part = Part(topics=topics, partitions=partitions, brokers=brokers)
    with (
        waiting_for("reading the metadata log"),
        history_in(directory) as source,
        damages(permissive) as found,
    ):
        whole = moment(source, offset=offset, time_ms=time_ms, found=found)
        state = as_json(part_of(whole, part))
    if output == "json":
        echo(json.dumps(state))
        return
    for line in moment_lines(state, part.text()):
        echo(line)


for command in (diff, explain, whatif, top, stream):
    history.add_command(command)
