"""`quorate history diff | whatif | top`: changes between two points, the effect of a loss of
brokers, and rankings."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from quorate.cli.client.options import format_option
from quorate.cli.history.options import (
    damages,
    permissive_option,
    point,
    print_warnings,
    strict_option,
)
from quorate.cli.history.questions_text import (
    comparison_lines,
    each_broker_lines,
    what_if_json,
    what_if_lines,
)
from quorate.cli.history.rehearsal import play, refuse_without_scenario, rehearsal_options
from quorate.cli.history.source import DIRECTORY_OF_A_LOG, directory_argument, history_in
from quorate.cli.history.text import shown_lines
from quorate.cli.parsing.described_argument import Decorator, DescribedArgument
from quorate.cli.parsing.strict_command import StrictCommand
from quorate.cli.terminal.progress import waiting_for
from quorate.cli.terminal.safe_text import echo, echo_drawn
from quorate.quorum.analytics.replay.differences import Point

if TYPE_CHECKING:
    from quorate.quorum.analytics.replay.moment import Moment

MAX_PARTITIONS = 40
"""The most partitions that `whatif` prints, unless --limit says otherwise."""


def point_argument(name: str, metavar: str, description: str) -> Decorator:
    """Return a positional argument for a point of the history."""
    return click.argument(
        name, metavar=metavar, callback=point, cls=DescribedArgument, description=description
    )


@click.command(cls=StrictCommand)
@directory_argument
@point_argument("before", "A", "The first point: an offset, or a time.")
@point_argument("after", "B", "The second point: an offset, or a time.")
@permissive_option
@format_option
def diff(directory: Path, before: Point, after: Point, permissive: bool, output: str) -> None:
    """Print what differs between two points of the history.

    A and B are each an offset, or a time such as 2026-01-31T23:59:59 (UTC)."""
    from quorate.quorum.analytics.replay.differences import diff as compare

    with (
        waiting_for("reading the metadata log"),
        history_in(directory) as source,
        damages(permissive) as found,
    ):
        comparison = compare(source, before, after, found=found)
    if output == "json":
        echo(json.dumps(asdict(comparison)))
        return
    for line in comparison_lines(comparison):
        echo(line)


@click.command(cls=StrictCommand)
@click.argument(
    "directory",
    metavar="DIR",
    type=click.Path(exists=True, path_type=Path),
    required=False,
    cls=DescribedArgument,
    description=DIRECTORY_OF_A_LOG,
)
@click.option(
    "--from",
    "source_dir",
    metavar="DIR",
    type=click.Path(exists=True, path_type=Path),
    help="The same as DIR.",
)
@click.option(
    "--kill",
    "brokers",
    multiple=True,
    type=click.IntRange(min=0),
    help="The id of a broker that is lost. May be repeated.",
)
@click.option("--rack", "racks", multiple=True, help="All brokers of this rack are lost.")
@click.option(
    "--at",
    "at",
    callback=point,
    help="The offset or the time of the loss. [default: the end of the log]",
)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    help=f"The most partitions to print. JSON contains all. [default: {MAX_PARTITIONS}]",
)
@rehearsal_options
@permissive_option
@format_option
def whatif(
    directory: Path | None,
    source_dir: Path | None,
    brokers: tuple[int, ...],
    racks: tuple[str, ...],
    at: Point | None,
    limit: int | None,
    permissive: bool,
    output: str,
    **rehearsal: Any,
) -> None:
    """Print what the loss of brokers would do to the partitions of DIR.

    Without --kill and --rack, print the effect of the loss of each single broker, the worst first.
    The controller's own rules elect the leaders. Nothing is written.

    With --scenario, play a scenario on virtual time with these rules, many times with different
    timing, and print the spread of the outcomes. Sessions, elections, controlled shutdowns and ISR
    changes are those of a real controller. Load, data volumes and the spread of metadata are not
    modelled."""
    from quorate.quorum.analytics.replay.moment import moment

    given = [each for each in (directory, source_dir) if each is not None]
    if len(given) != 1:
        raise click.UsageError("give one DIR, as the argument or with --from")
    point_in_time = at or Point()
    if rehearsal["scenario"] is None:
        refuse_without_scenario(rehearsal)
    elif limit is not None:
        raise click.UsageError("--limit cannot be given with --scenario, which lists no partitions")
    with history_in(given[0]) as source, damages(permissive) as found:
        with waiting_for("reading the metadata log"):
            state = moment(
                source, offset=point_in_time.offset, time_ms=point_in_time.time_ms, found=found
            )
        if rehearsal["scenario"] is not None:
            play(state, given[0], brokers, racks, {**rehearsal, "permissive": permissive}, output)
            return
    _print_loss(state, brokers, racks, limit or MAX_PARTITIONS, output)


def _print_loss(
    state: Moment, brokers: tuple[int, ...], racks: tuple[str, ...], limit: int, output: str
) -> None:
    """Print the effect of one loss, or of that of each single broker."""
    from quorate.quorum.analytics.replay.what_if import brokers_in_racks, each_broker, what_if

    for rack in racks:
        if not brokers_in_racks(state.image, (rack,)):
            raise click.UsageError(f"--rack: no broker is in {rack} at this point")
    in_racks = brokers_in_racks(state.image, racks)
    if unknown := sorted(set(brokers) - set(state.image.broker_ids())):
        known = ", ".join(map(str, state.image.broker_ids()))
        raise click.UsageError(
            f"--kill: broker {unknown[0]} is not registered at this point; there are {known}"
        )
    if not brokers and not racks:
        results = each_broker(state)
        if output == "json":
            echo(json.dumps([what_if_json(each) for each in results]))
            return
        for line in each_broker_lines(state, results):
            echo(line)
        return
    result = what_if(state, {*brokers, *in_racks})
    if output == "json":
        echo(json.dumps(what_if_json(result)))
        return
    for line in what_if_lines(state, result, limit):
        echo(line)


@click.command(cls=StrictCommand)
@directory_argument
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="The number of rows of each ranking.",
)
@strict_option
@format_option
def top(directory: Path, limit: int, strict: bool, output: str) -> None:
    """Print the partitions and brokers to which most happened."""
    from quorate.quorum.analytics.log.errors import damage_said_plainly
    from quorate.quorum.analytics.spark.session import local_session
    from quorate.quorum.analytics.tables import read_tables
    from quorate.quorum.analytics.tables.top import NEEDED
    from quorate.quorum.analytics.tables.top import top as rank

    with (
        waiting_for("ranking with Spark"),
        history_in(directory, all_nodes=True) as source,
        local_session("quorate history top") as spark,
        damage_said_plainly(),
    ):
        tables = read_tables(spark, source, only=(*NEEDED, "warnings"), strict=strict)
        # DIR is one cluster.
        ranked = {name: table.drop("cluster_id") for name, table in rank(tables, limit).items()}
        found = {
            name: (table.columns, [row.asDict(recursive=True) for row in table.collect()])
            for name, table in ranked.items()
        }
        print_warnings(tables["warnings"])
    if output == "json":
        echo(json.dumps({name: rows for name, (_, rows) in found.items()}, default=str))
        return
    for name, (columns, rows) in found.items():
        echo(f"{name}:")
        for line in shown_lines(columns, rows, indent=2) if rows else ("  none",):
            echo_drawn(line)
