"""The command `quorate chaos heal`: ends every fault of a cluster, also those of other runs."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import click

from quorate.cli.chaos.control.command_control import answers, run_command
from quorate.cli.chaos.control.fault_sockets import FaultSockets
from quorate.cli.chaos.control.pause_guard import process_state
from quorate.cli.chaos.control.process_cluster import ProcessCluster
from quorate.cli.chaos.loading.node_file import RESUME, START, ListedNode, NodeList
from quorate.cli.chaos.run.listed_runs import nodes_of
from quorate.cli.client.client_file import ClientFile
from quorate.cli.client.client_properties import ClientSecurity
from quorate.cli.client.errors import PARTLY, Refused
from quorate.cli.client.options import command_config_option
from quorate.cli.nodes.cluster_dir import NodeEntry, alive
from quorate.cli.parsing.strict_command import StrictCommand
from quorate.cli.terminal.safe_text import echo

STOPPED = "T"
RESUMED_S = 5.0
"""Time, in s, within which a node must answer after its command `resume`."""
POLL_S = 0.1


@click.command(cls=StrictCommand)
@click.option(
    "--dir",
    "directory",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Directory of the cluster.",
)
@click.option(
    "--nodes",
    "node_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The file that lists the nodes and their commands.",
)
@command_config_option
def heal(directory: Path | None, node_file: Path | None, command_config: str | None) -> None:
    """End all faults of the cluster in --dir, or of the nodes in --nodes.

    Paused nodes continue, the rules of fault sockets end, and nodes that are down start. A run of
    `quorate chaos` that is in progress on this cluster then gets a bad verdict. The exit code is 4
    if a fault could not be ended."""
    if node_file is not None and directory is None:
        heal_listed(nodes_of(node_file), ClientFile.read(command_config).security)
        return
    if directory is None or node_file is not None:
        raise click.UsageError("give one of --dir and --nodes")
    if command_config is not None:
        raise click.UsageError("--command-config needs --nodes: --dir asks no node over TLS")
    cluster = ProcessCluster(directory)
    if not cluster.directory.file.exists():
        raise Refused(f"{directory}: there is no cluster in this directory (no cluster.json)")
    entry = cluster.entry
    nodes = (*entry["controllers"], *entry["brokers"])
    failed = False
    # A node has its fault socket if it was started with --faults, so it is started like that again.
    sockets = [cluster.directory.faults_socket(node["id"]).exists() for node in nodes]
    faulty = ProcessCluster(directory, faults=any(sockets))
    count = 0
    for node in nodes:
        for said, good in healed(faulty, node):
            echo(f"node {node['id']}: {said}")
            count += 1
            failed |= not good
    if not count:
        echo("there is no fault")
    if failed:
        raise SystemExit(PARTLY)


def heal_listed(listed: NodeList, security: ClientSecurity) -> None:
    """Let each node that does not answer continue, and start it if it still does not answer.

    Exit with PARTLY if a command fails."""
    failed = False
    count = 0
    for node in listed.nodes.values():
        if asyncio.run(answers(node.address, security)):
            continue
        count += 1
        try:
            said = resumed_or_started(node, listed.command_timeout_ms / 1000, security)
        except Refused as refused:
            said, failed = refused.message, True
        echo(f"node {node.id}: {said}")
    if not count:
        echo("every node answers")
    if failed:
        raise SystemExit(PARTLY)


def resumed_or_started(node: ListedNode, limit_s: float, security: ClientSecurity) -> str:
    """End the pause of a node that does not answer, or start it. Return what was done as text.

    The command `resume` of a node without a process may fail. Raise Refused if `start` fails."""
    with contextlib.suppress(Refused):
        run_command(node, RESUME, limit_s)
        if asyncio.run(answers_soon(node, security)):
            return "it did not answer, and continues"
    run_command(node, START, limit_s)
    return "it does not answer, and is started"


async def answers_soon(node: ListedNode, security: ClientSecurity) -> bool:
    """Return True if the node answers within RESUMED_S."""
    deadline_s = time.monotonic() + RESUMED_S
    while not (found := await answers(node.address, security)):
        if time.monotonic() > deadline_s:
            break
        await asyncio.sleep(POLL_S)
    return found


def healed(cluster: ProcessCluster, node: NodeEntry) -> Iterator[tuple[str, bool]]:
    """End the faults of a node, and yield a text about each one, with True if it has ended."""
    pid, node_id = node["pid"], node["id"]
    if pid is None or not alive(pid):
        cluster.restart(node_id)
        yield "it was down and is started", True
        return
    if process_state(pid) == STOPPED:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
        yield "it was paused and continues", True
    if not cluster.directory.faults_socket(node_id).exists():
        return
    sockets = FaultSockets(cluster.directory)
    try:
        rules = sockets.in_force(node_id)
        if rules:
            sockets.heal(node_id)
            yield f"the rules {rules} end", True
    except Refused as refused:
        yield refused.message, False
