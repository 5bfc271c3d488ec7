"""`quorate down`: stops a local cluster that `quorate up` started."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence, Set
from pathlib import Path

import click

from quorate.cli.client.errors import NotReachable, Refused
from quorate.cli.nodes.cluster_dir import ClusterDir, ClusterEntry, alive, set_pids
from quorate.cli.nodes.cluster_processes import (
    directory_option,
    running_nodes,
    supervisor_of,
    wait_gone,
)
from quorate.cli.parsing.strict_command import StrictCommand
from quorate.cli.terminal.progress import Progress
from quorate.cli.terminal.safe_text import echo

DOWN_TIMEOUT_S = 100.0
"""The time that a supervisor has to stop its nodes. Without one, each group of nodes has half."""


@click.command(cls=StrictCommand)
@directory_option
def down(root: str) -> None:
    """Stop the cluster in --dir: first the brokers, then the controllers.

    Print the nodes that were stopped."""
    directory = ClusterDir(Path(root))
    if not directory.file.exists():
        raise Refused(f"{directory.root}: there is no cluster in this directory (no cluster.json)")
    supervisor, running = supervisor_of(directory), running_nodes(directory)
    progress = Progress("stopping the cluster")

    def waits() -> None:
        progress.note(lambda: waiting_text(directory))

    directory.killed_nodes()  # of an earlier stop
    try:
        if supervisor is None:
            stop_orphans(directory, waits)
        else:
            os.kill(supervisor, signal.SIGTERM)
            if not wait_gone([supervisor], DOWN_TIMEOUT_S, waits):
                raise NotReachable(f"the supervisor, pid {supervisor}, did not end in time")
    finally:
        progress.close()
    echo(stopped_text(directory, running, directory.killed_nodes()))


def waiting_text(directory: ClusterDir) -> str:
    """Return the nodes that still run, and why the stop waits for them."""
    running, entry = running_nodes(directory), directory.read()
    brokers = nodes_text(entry, running, ("brokers",))
    if brokers:
        return f"waits for {brokers}, until other brokers lead their partitions"
    controllers = nodes_text(entry, running, ("controllers",))
    return f"waits for {controllers}" if controllers else "waits for the supervisor"


def stopped_text(directory: ClusterDir, stopped: set[int], killed: set[int]) -> str:
    """Return the sentence about the nodes that `down` stopped, and those that did not run before.
    `killed` are those that did not stop in time."""
    if not stopped:
        return f"no node of {directory.root} was running"
    entry = directory.read()
    every = {node["id"] for node in (*entry["brokers"], *entry["controllers"])}
    text = f"stopped {nodes_text(entry, stopped)} of {directory.root}"
    if killed:
        text += f"; {nodes_text(entry, killed)} did not stop in time and had to be killed"
    if every - stopped:
        text += f"; {nodes_text(entry, every - stopped)} did not run before"
    return f"{text}; `quorate up` starts them again"


def nodes_text(
    entry: ClusterEntry, ids: Set[int], roles: Sequence[str] = ("brokers", "controllers")
) -> str:
    """Return nodes as text, such as "broker 4 and controllers 1, 2"."""
    lists = {"brokers": entry["brokers"], "controllers": entry["controllers"]}
    parts = []
    for role in roles:
        found = [str(node["id"]) for node in lists[role] if node["id"] in ids]
        if found:
            name = role if len(found) > 1 else role.removesuffix("s")
            parts.append(f"{name} {', '.join(found)}")
    return " and ".join(parts)


def stop_orphans(directory: ClusterDir, waits: Callable[[], None]) -> None:
    """Stop nodes whose supervisor is gone, and nodes that the user started: brokers first.

    Raise NotReachable if one does not end in time. If it is a broker, the controllers still run."""
    entry = directory.read()
    for group in (entry["brokers"], entry["controllers"]):
        pids = [node["pid"] for node in group if node["pid"] and alive(node["pid"])]
        for pid in pids:
            os.kill(pid, signal.SIGTERM)
        if not wait_gone(pids, DOWN_TIMEOUT_S / 2, waits):
            raise NotReachable(f"these processes did not end in time: {', '.join(map(str, pids))}")
        set_pids(directory.file, {node["id"]: None for node in group})
