"""`quorate down`: stops a local cluster that `quorate up` started."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import click

from quorate.cli.client.errors import NotReachable, Refused
from quorate.cli.nodes.cluster_dir import ClusterDir, alive, set_pids
from quorate.cli.nodes.cluster_processes import (
    directory_option,
    running_nodes,
    supervisor_of,
    wait_gone,
)
from quorate.cli.terminal.progress import waiting_for
from quorate.cli.terminal.safe_text import echo

DOWN_TIMEOUT_S = 100.0
"""The time that a supervisor has to stop its nodes. Without one, each group of nodes has half."""


@click.command()
@directory_option
def down(root: str) -> None:
    """Stop the cluster in --dir: first the brokers, then the controllers.

    Print the nodes that were stopped."""
    directory = ClusterDir(Path(root))
    if not directory.file.exists():
        raise Refused(f"{directory.root}: there is no cluster in this directory (no cluster.json)")
    supervisor, running = supervisor_of(directory), running_nodes(directory)
    with waiting_for("stopping the cluster"):
        if supervisor is None:
            stop_orphans(directory)
        else:
            os.kill(supervisor, signal.SIGTERM)
            if not wait_gone([supervisor], DOWN_TIMEOUT_S):
                raise NotReachable(f"the supervisor, pid {supervisor}, did not end in time")
    echo(stopped_text(directory, running))


def stopped_text(directory: ClusterDir, stopped: set[int]) -> str:
    """Return the sentence about the nodes that `down` stopped."""
    if not stopped:
        return f"no node of {directory.root} was running"
    entry = directory.read()
    parts = []
    for role in ("brokers", "controllers"):
        ids = [str(node["id"]) for node in entry[role] if node["id"] in stopped]
        if ids:
            parts.append(f"{role} {', '.join(ids)}")
    return f"stopped {' and '.join(parts)} of {directory.root}; `quorate up` starts them again"


def stop_orphans(directory: ClusterDir) -> None:
    """Stop nodes whose supervisor is gone, and nodes that the user started: brokers first.

    Raise NotReachable if one does not end in time. If it is a broker, the controllers still run."""
    entry = directory.read()
    for group in (entry["brokers"], entry["controllers"]):
        pids = [node["pid"] for node in group if node["pid"] and alive(node["pid"])]
        for pid in pids:
            os.kill(pid, signal.SIGTERM)
        if not wait_gone(pids, DOWN_TIMEOUT_S / 2):
            raise NotReachable(f"these processes did not end in time: {', '.join(map(str, pids))}")
        set_pids(directory.file, {node["id"]: None for node in group})
