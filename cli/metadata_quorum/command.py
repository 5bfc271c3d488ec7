"""`quorate metadata-quorum`: kafka-metadata-quorum.

Changes of the voters are in voters.py."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence

import click

from quorate.cli.client.options import cluster_options, connected, format_option
from quorate.cli.client.quorum import Quorum, describe_quorum
from quorate.cli.cluster.description import describe_cluster
from quorate.cli.metadata_quorum.force_voters import force_voters
from quorate.cli.metadata_quorum.voters import add_controller, remove_controller
from quorate.cli.parsing.suggesting_group import SuggestingGroup
from quorate.cli.terminal.safe_text import echo
from quorate.cli.terminal.tables import Cell, Mark, Table, Value, show
from quorate.quorum.ids import ZERO_UUID, uuid_to_text
from quorate.quorum.protocol.schemas.cluster import (
    QuorumReplicaState,
)

COLUMNS = (
    "NodeId",
    "DirectoryId",
    "LogEndOffset",
    "Lag",
    "LastFetchTimestamp",
    "LastCaughtUpTimestamp",
    "Status",
)


@click.group("metadata-quorum", cls=SuggestingGroup)
@cluster_options(controllers=True)
@click.pass_context
def metadata_quorum(
    context: click.Context,
    bootstrap_server: str | None,
    bootstrap_controller: str | None,
    command_config: str | None,
    timeout_s: float | None,
) -> None:
    """Describe and change the metadata quorum."""
    context.obj = {
        "bootstrap_server": bootstrap_server,
        "bootstrap_controller": bootstrap_controller,
        "command_config": command_config,
        "timeout_s": timeout_s,
    }


metadata_quorum.add_command(add_controller)
metadata_quorum.add_command(remove_controller)
metadata_quorum.add_command(force_voters)


@metadata_quorum.command()
@click.option("--status", is_flag=True, help="Print a summary of the quorum.")
@click.option("--replication", is_flag=True, help="Print a line for each voter and observer.")
@click.option("--human-readable", is_flag=True, help="Print ages instead of timestamps.")
@format_option
@click.pass_context
def describe(
    context: click.Context, status: bool, replication: bool, human_readable: bool, output: str
) -> None:
    """Print the leader, the epoch, the high watermark and the lag of every replica."""
    if status == replication:
        raise click.UsageError("exactly one of --status and --replication must be specified")
    if human_readable and not replication:
        raise click.UsageError("--human-readable is only supported along with --replication")
    with connected(**context.obj) as admin:
        quorum = describe_quorum(admin)
        if replication:
            now_ms = int(time.time() * 1000) if human_readable else None
            rows = replication_rows(quorum, now_ms)
            lines = table_lines(COLUMNS, rows)
            table = Table(columns=COLUMNS, rows=[marked(row) for row in rows])
            value: object = [dict(zip(COLUMNS, row, strict=True)) for row in rows]
        else:
            fields = status_fields(quorum, describe_cluster(admin).cluster_id)
            lines = [f"{name + ':':<24}{field}" for name, field in fields.items()]
            table = Table(rows=[*fields.items()])
            value = {name: as_value(field) for name, field in fields.items()}
    if output == "json":
        echo(json.dumps(value, indent=2))
    else:
        show(lines, [table])


def status_fields(quorum: Quorum, cluster_id: str) -> dict[str, str]:
    """Return the fields of describe --status in their order. Raise Refused if no voter leads."""
    lag, lag_ms = quorum.max_lag()
    state = quorum.state
    return {
        "ClusterId": cluster_id,
        "LeaderId": str(state.leader_id),
        "LeaderEpoch": str(state.leader_epoch),
        "HighWatermark": str(state.high_watermark),
        "MaxFollowerLag": str(lag),
        "MaxFollowerLagTimeMs": str(lag_ms),
        "CurrentVoters": replicas_text(quorum, state.current_voters),
        "CurrentObservers": replicas_text(quorum, state.observers),
    }


def replicas_text(quorum: Quorum, replicas: Sequence[QuorumReplicaState]) -> str:
    """Return replicas as a JSON list, as kafka-metadata-quorum prints them."""
    shown = []
    for replica in replicas:
        value: dict[str, object] = {"id": replica.replica_id}
        if replica.replica_directory_id != ZERO_UUID:
            value["directoryId"] = uuid_to_text(replica.replica_directory_id)
        endpoints = quorum.endpoints(replica.replica_id)
        if endpoints:
            value["endpoints"] = endpoints
        shown.append(json.dumps(value))
    return f"[{', '.join(shown)}]"


def as_value(field: str) -> object:
    """Return a field of describe --status as a JSON value."""
    if field.startswith("["):
        return json.loads(field)
    return int(field) if field.lstrip("-").isdecimal() else field


def replication_rows(quorum: Quorum, now_ms: int | None) -> list[list[str]]:
    """Return the rows of describe --replication: the leader, the followers, the observers.

    With `now_ms` timestamps are shown as ages. Raise Refused if no voter leads."""
    leader = quorum.leader
    groups = (
        ([leader], "Leader"),
        (quorum.followers, "Follower"),
        (quorum.state.observers, "Observer"),
    )
    return [
        [
            str(replica.replica_id),
            uuid_to_text(replica.replica_directory_id),
            str(replica.log_end_offset),
            str(leader.log_end_offset - replica.log_end_offset),
            time_text(replica.last_fetch_timestamp, now_ms),
            time_text(replica.last_caught_up_timestamp, now_ms),
            status,
        ]
        for replicas, status in groups
        for replica in replicas
    ]


def marked(row: Sequence[str]) -> tuple[Value, ...]:
    """Return a row of describe --replication for a terminal, with the lag and status marked."""
    *first, lag, fetched, caught_up, status = row
    return (
        *first,
        Cell(lag, Mark.GOOD if lag == "0" else Mark.WARN),
        fetched,
        caught_up,
        Cell(status, Mark.GOOD if status == "Leader" else None),
    )


def time_text(timestamp_ms: int, now_ms: int | None) -> str:
    """Return a timestamp in ms, or its age if `now_ms` is given."""
    if timestamp_ms < 0 or now_ms is None:
        return str(timestamp_ms)
    return f"{max(0, now_ms - timestamp_ms)} ms ago"


def table_lines(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return Kafka's table: each column as wide as its widest cell, followed by a tab."""
    widths = [max(len(row[n]) for row in (columns, *rows)) for n in range(len(columns))]
    return [
        "".join(f"{cell:<{width}}\t" for cell, width in zip(row, widths, strict=True))
        for row in (columns, *rows)
    ]
