"""The commands of a nodes.toml for a node of `quorate up`: commanded_node.py DIR ID NAME."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from quorate.cli.chaos.control.process_cluster import ProcessCluster

SIGNALS = {"kill": signal.SIGKILL, "pause": signal.SIGSTOP, "resume": signal.SIGCONT}
STOP_S = 60.0


def run(directory: Path, node_id: int, name: str) -> bool:
    """Carry out a command. Return False if the node has not ended in time."""
    cluster = ProcessCluster(directory)
    if name == "start":
        cluster.restart(node_id)
    elif name == "stop":
        return cluster.terminate(node_id, STOP_S)
    else:
        os.kill(cluster.pid(node_id), SIGNALS[name])
    return True


if __name__ == "__main__":
    sys.exit(0 if run(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]) else 1)
