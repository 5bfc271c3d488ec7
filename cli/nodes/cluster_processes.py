"""The running processes of a local cluster: its supervisor and its nodes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import click

from quorate.cli.nodes.cluster_dir import ClusterDir, alive

DEFAULT_DIR = "quorate-data"

directory_option = click.option(
    "--dir",
    "root",
    default=DEFAULT_DIR,
    show_default=True,
    type=click.Path(file_okay=False),
    help="Directory of the cluster.",
)


def supervisor_of(directory: ClusterDir) -> int | None:
    """Return the pid of the directory's running supervisor, or None."""
    try:
        pid = int(directory.supervisor_file.read_text())
    except (OSError, ValueError):
        return None
    return pid if alive(pid) else None


def running_nodes(directory: ClusterDir) -> set[int]:
    """Return the ids of the nodes that run already, started by the user."""
    if not directory.file.exists():
        return set()
    entry = directory.read()
    nodes = (*entry["controllers"], *entry["brokers"])
    return {node["id"] for node in nodes if node["pid"] and alive(node["pid"])}


def wait_gone(
    pids: Sequence[int], timeout_s: float, waits: Callable[[], None] = lambda: None
) -> bool:
    """Wait until the processes have ended. Return False if `timeout_s` passes first. `waits` is
    called repeatedly meanwhile."""
    deadline = time.monotonic() + timeout_s
    while any(alive(pid) for pid in pids):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
        waits()
    return True
