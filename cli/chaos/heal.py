"""The command `quorate chaos heal`: ends every fault of a cluster, also those of other runs."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import click

from quorate.cli.chaos.actions.fault_sockets import FaultSockets
from quorate.cli.chaos.actions.pause_guard import process_state
from quorate.cli.chaos.actions.process_cluster import ProcessCluster
from quorate.cli.client.errors import PARTLY, Refused
from quorate.cli.nodes.cluster_dir import NodeEntry, alive

STOPPED = "T"


@click.command()
@click.option(
    "--dir",
    "directory",
    required=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Directory of the cluster.",
)
def heal(directory: Path) -> None:
    """End all faults of the cluster in --dir.

    Paused nodes continue, the rules of fault sockets end, and nodes that are down start. A run of
    `quorate chaos` that is in progress on this cluster then gets a bad verdict. The exit code is 4
    if a fault could not be ended."""
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
            click.echo(f"node {node['id']}: {said}")
            count += 1
            failed |= not good
    if not count:
        click.echo("there is no fault")
    if failed:
        raise SystemExit(PARTLY)


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
