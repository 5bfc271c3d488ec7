"""`quorate metadata-quorum`: kafka-metadata-quorum.

Changes of the voters are in voters.py."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass

import click

from quorate.cli.client.admin import PASSING, UNKNOWN_OUTCOME, Admin, check
from quorate.cli.client.errors import NotReachable, Refused
from quorate.cli.client.options import cluster_options, connected, format_option
from quorate.cli.cluster.description import describe_cluster
from quorate.cli.metadata_quorum.force_voters import force_voters
from quorate.cli.metadata_quorum.voters import add_controller, remove_controller
from quorate.cli.suggesting_group import SuggestingGroup
from quorate.cli.terminal.safe_text import echo
from quorate.cli.terminal.tables import Cell, Mark, Table, Value, show
from quorate.quorum.ids import METADATA_TOPIC, ZERO_UUID, uuid_to_text
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.cluster import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    QuorumNode,
    QuorumPartition,
    QuorumPartitionState,
    QuorumReplicaState,
    QuorumTopic,
)
from quorate.quorum.watch.quorum_reach import LOST

COLUMNS = (
    "NodeId",
    "DirectoryId",
    "LogEndOffset",
    "Lag",
    "LastFetchTimestamp",
    "LastCaughtUpTimestamp",
    "Status",
)


@dataclass(frozen=True, slots=True)
class Quorum:
    """The response of DescribeQuorum: the metadata partition's state and the nodes' endpoints."""

    state: QuorumPartitionState
    nodes: tuple[QuorumNode, ...]

    @property
    def leader(self) -> QuorumReplicaState:
        """Return the leader's state. Raise Refused if no voter leads."""
        for voter in self.state.current_voters:
            if voter.replica_id == self.state.leader_id:
                return voter
        raise Refused("the quorum has no leader among its voters at the moment")

    @property
    def followers(self) -> list[QuorumReplicaState]:
        """Return the states of all voters except the leader."""
        voters = self.state.current_voters
        return [voter for voter in voters if voter.replica_id != self.state.leader_id]

    def max_lag(self) -> tuple[int, int]:
        """Return the lag of the slowest voter in records and in ms (-1: unknown).

        Raise Refused if no voter leads."""
        leader = self.leader
        last = min(self.state.current_voters, key=lambda voter: voter.log_end_offset)
        lag = leader.log_end_offset - last.log_end_offset
        if last.replica_id == leader.replica_id or lag == 0:
            return 0, 0
        ours, theirs = leader.last_caught_up_timestamp, last.last_caught_up_timestamp
        return lag, ours - theirs if ours >= 0 and theirs >= 0 else -1

    def endpoints(self, node_id: int) -> list[str]:
        """Return the endpoints of a node as NAME://HOST:PORT."""
        listeners = next((node.listeners for node in self.nodes if node.node_id == node_id), ())
        return [f"{each.name}://{each.host}:{each.port}" for each in listeners]


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


class QuorumLost(Refused):
    """The metadata quorum is lost, as the node that was asked sees it. `reason` says more."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def is_lost(answer: DescribeQuorumResponse) -> bool:
    """Return True if the node answers that it reaches no majority of the voters."""
    return (answer.error_message or "").startswith(LOST)


def describe_quorum(admin: Admin, wait_s: float | None = None) -> Quorum:
    """Return the quorum's state from the cluster.

    Raise QuorumLost if the node reports that it reaches no majority of the voters, Refused on
    another error, and NotReachable if no node answers. If `wait_s` is given, raise QuorumLost if no
    active controller answers for so long. The links to a voter that is paused or without power stay
    open for some seconds, in which a node takes the voter for reachable."""
    topic = QuorumTopic(topic_name=METADATA_TOPIC, partitions=(QuorumPartition(partition_index=0),))
    request = DescribeQuorumRequest(topics=(topic,))
    silent = f"no active controller has answered for {wait_s or 0:g} s"
    try:
        answer = admin.ask(request, DescribeQuorumResponse, error_codes, wait_s)
    except NotReachable:
        if wait_s is None:
            raise
        raise QuorumLost(silent) from None
    if is_lost(answer):
        raise QuorumLost(answer.error_message or "")
    if wait_s is not None and has_no_controller(answer):
        raise QuorumLost(silent)
    check(answer.error_code, answer.error_message)
    state = answer.topics[0].partitions[0]
    check(state.error_code, state.error_message)
    return Quorum(state, answer.nodes)


def has_no_controller(answer: DescribeQuorumResponse) -> bool:
    """Return True if the node has found no active controller that answers."""
    transient = PASSING | UNKNOWN_OUTCOME
    return any(ErrorCode.of(code) in transient for code in error_codes(answer))


def error_codes(answer: DescribeQuorumResponse) -> list[int]:
    """Return the error codes of the response and of its partitions. Return none if the quorum is
    lost, because waiting does not help."""
    if is_lost(answer):
        return []
    inner = [each.error_code for topic in answer.topics for each in topic.partitions]
    return [answer.error_code, *inner]


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
