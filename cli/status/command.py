"""`quorate status`: the cluster at a glance, once or on every change.

`cluster_status.py` reads the state of the cluster, and `watch.py` shows each change."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import click

from quorate.cli.client.admin import Admin
from quorate.cli.client.errors import Refused
from quorate.cli.client.options import cluster_options, connected, format_option
from quorate.cli.nodes.cluster_dir import ClusterEntry, read_cluster
from quorate.cli.parsing.strict_command import StrictCommand
from quorate.cli.status.changes import read_changes
from quorate.cli.status.changes_in_flight import ChangesReport
from quorate.cli.status.cluster_status import Selection
from quorate.cli.status.explanations import Explanations
from quorate.cli.status.outage import named_controllers, nodes_of, read_in_outages
from quorate.cli.status.partition_problems import STATES
from quorate.cli.status.status_tables import status_tables
from quorate.cli.status.unclean_elections import UncleanElections
from quorate.cli.status.watch import is_small, watch_status
from quorate.cli.terminal.progress import waiting_for
from quorate.cli.terminal.safe_text import echo
from quorate.cli.terminal.tables import show

DEFAULT_DIR = Path("quorate-data")


@click.command(cls=StrictCommand)
@cluster_options()
@click.option(
    "--bootstrap-controller",
    metavar="HOST:PORT,...",
    help="Controllers to ask if no broker answers.",
)
@click.option(
    "--dir",
    "root",
    type=click.Path(file_okay=False, path_type=Path),
    help="The directory of a cluster of `quorate up`. [default: quorate-data, if it exists]",
)
@click.option("--watch", is_flag=True, help="Print every change until interrupted.")
@click.option(
    "--interval",
    "interval_s",
    type=click.FloatRange(min=0.1),
    default=1.0,
    show_default=True,
    help="With --watch: seconds between two requests.",
)
@click.option("--topic", help="Show only topics that match this regular expression.")
@click.option(
    "--broker", type=click.IntRange(min=0), help="Show only problems that this broker causes."
)
@click.option(
    "--only",
    type=click.Choice(STATES),
    multiple=True,
    help="Show only problems of this kind. May be repeated.",
)
@click.option("--all", "every", is_flag=True, help="List every problem, each with its cause.")
@click.option(
    "--changes",
    is_flag=True,
    help="Show the changes of leaders, ISRs and replicas in flight, and the node that delays each.",
)
@format_option
def status(
    bootstrap_server: str | None,
    bootstrap_controller: str | None,
    command_config: str | None,
    timeout_s: float | None,
    root: Path | None,
    watch: bool,
    interval_s: float,
    topic: str | None,
    broker: int | None,
    only: tuple[str, ...],
    every: bool,
    changes: bool,
    output: str,
) -> None:
    """Print the quorum, the brokers, and the partitions with a problem and its cause.

    Problems are counted by broker and cause. The worst ones are listed: first those without a
    leader (offline), then those under min.insync.replicas, then the under-replicated ones.
    Elections that may have lost records follow.

    --changes prints the stages of all nodes instead: what they have committed, replayed and acted
    on, and the changes that a node delays. With --all it also prints complete changes.

    If no broker answers, the controllers of --dir or --bootstrap-controller are asked for what they
    know. If the quorum is lost, each controller is asked whether it answers.

    The exit code is 1 if a shown partition is offline or below min.insync.replicas, if the metadata
    quorum is lost, or if no broker answers. With --watch the command redraws a terminal. Otherwise
    it prints each change as a block of lines, or as one line with --format json."""
    if changes and (topic is not None or broker is not None or only):
        raise click.UsageError("--changes cannot be combined with --topic, --broker or --only")
    refuse_without_effect(click.get_current_context())
    known = named_controllers(bootstrap_controller)
    if bootstrap_server is None and (root is not None or command_config is None):
        entry = local_cluster(root)
        listed = nodes_of(entry)
        bootstrap_server = entry["bootstrap"]
        known = replace(listed, controllers=known.controllers or listed.controllers)
    with connected(
        bootstrap_server=bootstrap_server,
        command_config=command_config,
        timeout_s=timeout_s,
        impatient=True,
        shows_waiting=False,
    ) as admin:
        if changes:
            show_changes(admin, interval_s if watch else None, every=every, output=output)
            return
        selection = Selection(topic=topic, broker=broker, only=only, every=every)
        explanations, elections = Explanations(), UncleanElections()
        read = partial(read_in_outages, admin, known, explanations, selection, elections)
        if watch:
            watch_status(
                read,
                interval_s,
                lambda found: status_tables(found, every=every, small=is_small()),
                as_json=output == "json",
                every=every,
            )
            return
        with waiting_for("asking the cluster"):
            found = read()
    if output == "json":
        echo(json.dumps(found.as_json()))
    else:
        show(found.lines(every=every), status_tables(found, every=every))
    if found.is_outage:
        raise SystemExit(1)


def refuse_without_effect(context: click.Context) -> None:
    """Raise UsageError for an option that another one, or the lack of --watch, leaves without
    effect."""
    given = context.params
    if given["bootstrap_server"] is not None and given["root"] is not None:
        raise click.UsageError("only one of --bootstrap-server and --dir can be given")
    source = context.get_parameter_source("interval_s")
    if source is click.core.ParameterSource.COMMANDLINE and not given["watch"]:
        raise click.UsageError("--interval needs --watch")


def show_changes(admin: Admin, interval_s: float | None, *, every: bool, output: str) -> None:
    """Print the changes in flight: once, or each time that they change if `interval_s` is given."""

    def read() -> ChangesReport:
        return read_changes(admin, every=every)

    if interval_s is not None:
        watch_status(
            read,
            interval_s,
            lambda report: report.lines(every=every),
            as_json=output == "json",
            every=every,
        )
        return
    with waiting_for("asking the cluster"):
        found = read()
    if output == "json":
        echo(json.dumps(found.as_json()))
    else:
        for line in found.lines(every=every):
            echo(line)


def local_cluster(root: Path | None) -> ClusterEntry:
    """Return the entry of the local cluster in `root`, which lists brokers.

    Raise UsageError if there is no cluster.json, Refused if it is invalid or lists no broker."""
    file = (root or DEFAULT_DIR) / "cluster.json"
    try:
        entry = read_cluster(file)
    except FileNotFoundError:
        raise click.UsageError("--bootstrap-server or --dir must be given") from None
    except OSError as error:
        raise Refused(f"{file} cannot be read: {error.strerror}") from None
    if not entry.get("bootstrap"):
        raise Refused(f"{file} lists no broker: give --bootstrap-server, or run `quorate up` again")
    return entry
