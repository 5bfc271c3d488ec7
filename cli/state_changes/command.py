"""`quorate state-changes`: the story of a topic's partitions over all nodes.

`merge` is Kafka's StateChangeLogMerger, with the metadata log as another source."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

import click

from quorate.cli.client.errors import Refused, said_once
from quorate.cli.client.options import format_option
from quorate.cli.history.options import moment_ms
from quorate.cli.history.source import history_in
from quorate.cli.nodes.cluster_dir import ClusterDir
from quorate.cli.parsing.described_argument import DescribedArgument
from quorate.cli.parsing.suggesting_group import SuggestingGroup
from quorate.cli.state_changes.merge import (
    Entry,
    Wanted,
    matching_files,
    merged,
    of_log,
    of_metadata,
)
from quorate.cli.terminal.safe_text import echo


@click.group(cls=SuggestingGroup)
def state_changes() -> None:
    """Show when changes of partitions were decided, and when each node acted on them."""


@state_changes.command()
@click.argument(
    "directory",
    metavar="[DIR]",
    required=False,
    type=click.Path(exists=True, path_type=Path),
    cls=DescribedArgument,
    description="The directory of `quorate up`, or of a metadata log.",
)
@click.option(
    "--logs", help="Log files of nodes, separated by commas. [default: those of the nodes in DIR]"
)
@click.option(
    "--logs-regex",
    metavar="DIRECTORY/REGEX",
    help="The log files in a directory whose names match this regular expression.",
)
@click.option("--topic", required=True, help="The topic of the partitions.")
@click.option(
    "--partition",
    "partitions",
    type=click.IntRange(min=0),
    multiple=True,
    help="A partition of the topic. May be repeated. [default: all]",
)
@click.option(
    "--from",
    "start_ms",
    callback=moment_ms,
    help="The begin of the period: ISO 8601 (UTC), or ms since 1970.",
)
@click.option(
    "--to",
    "end_ms",
    callback=moment_ms,
    help="The end of the period: ISO 8601 (UTC), or ms since 1970.",
)
@format_option
def merge(
    directory: Path | None,
    logs: str | None,
    logs_regex: str | None,
    topic: str,
    partitions: tuple[int, ...],
    start_ms: int | None,
    end_ms: int | None,
    output: str,
) -> None:
    """Print what the metadata log and the logs of all nodes say about partitions, by time.

    DIR is the directory of a cluster of `quorate up`, or any source of `quorate history`: a node's
    directory, a metadata log, or an archive. The nodes write a line for each change that they act
    on if `quorate.state.change.log.enable` is true. Logs of Kafka's brokers can be given, too.

    Times are printed in UTC. Those in logs of Kafka's brokers, and of versions of Quorate whose
    lines have no Z after the time, are read as local times of this machine.

    \b
    quorate state-changes merge quorate-data --topic orders --partition 0
    quorate state-changes merge --logs b4.log,b5.log --topic orders --from 2026-01-31T23:59"""
    if directory is None and logs is None and logs_regex is None:
        raise click.UsageError("DIR, --logs or --logs-regex must be given")
    if logs is not None and logs_regex is not None:
        raise click.UsageError("only one of --logs and --logs-regex can be given")
    if start_ms is not None and end_ms is not None and end_ms <= start_ms:
        raise click.UsageError("--to must be later than --from")
    wanted = Wanted(topic=topic, partitions=partitions or None, start_ms=start_ms, end_ms=end_ms)
    files = log_files(directory, logs, logs_regex)
    try:
        with ExitStack() as stack:
            streams = [of_log(file, wanted) for file in files]
            if directory is not None:
                source = stack.enter_context(history_in(directory))
                streams.append(metadata_entries(source, wanted))
            show(merged(streams), output)
    except OSError as error:
        raise Refused(f"a log cannot be read: {said_once(error)}") from None


def log_files(directory: Path | None, logs: str | None, expression: str | None) -> list[Path]:
    """Return the given log files, or those of the nodes in `directory`, a local cluster.

    Raise UsageError for an invalid expression, and Refused if no file matches or the directory
    cannot be read."""
    if logs is not None:
        return [Path(each.strip()) for each in logs.split(",") if each.strip()]
    if expression is not None:
        place, _, name = expression.rpartition("/")
        try:
            found = matching_files(Path(place or "."), re.compile(name))
        except (re.error, OverflowError, RecursionError) as error:
            raise click.UsageError(f"--logs-regex: {expression!r}: {error}") from None
        except OSError as error:
            raise Refused(f"--logs-regex: {error}") from None
        if not found:
            raise Refused(f"--logs-regex: no file matches {expression!r}")
        return found
    if directory is None or not directory.is_dir():
        return []
    cluster = ClusterDir(directory)
    return [file for node_id in cluster.node_ids() if (file := cluster.node_log(node_id)).is_file()]


def metadata_entries(source: Path, wanted: Wanted) -> Iterator[Entry]:
    """Yield the wanted events of a metadata log. Raise as `explain` does."""
    from quorate.quorum.analytics.replay.story import explain

    yield from of_metadata(explain(source, wanted.topic), wanted)


def show(entries: Iterator[Entry], output: str) -> None:
    """Print the entries, as lines or as one JSON array."""
    from quorate.quorum.analytics.log.text import clock

    if output == "json":
        shown = [
            {name: value for name, value in asdict(entry).items() if name != "of_log"}
            for entry in entries
        ]
        echo(json.dumps(shown))
        return
    for entry in entries:
        place = "" if entry.offset is None else f" offset {entry.offset}"
        cause = f" [{entry.cause}]" if entry.cause else ""
        echo(f"{clock(entry.time_ms)}  {entry.source}{place}: {entry.text}{cause}")
