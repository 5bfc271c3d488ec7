"""A cluster started with `quorate up`, in a temporary directory."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from quorate.cli.nodes.cluster_dir import ClusterDir, NodeEntry, alive

QUORATE = (sys.executable, "-m", "quorate.cli")
READY_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 30.0
POLL_S = 0.002


class QuorateCluster:
    """Three controllers and three brokers, run by `quorate up`.

    A node that was killed and restarted is a child of this process, and no longer of `quorate up`.
    """

    name = "quorate"

    def __init__(
        self, server: Sequence[str] = (*QUORATE, "server"), program: Sequence[str] = QUORATE
    ) -> None:
        """Create a temporary directory. `server` is the command that restarts nodes, and `program`
        the `quorate` that starts them.

        `server` gets the path of a .properties file as its last argument."""
        self.launched_s = 0.0
        self._server = server
        self._program = program
        self._directory = ClusterDir(Path(tempfile.mkdtemp(prefix="quorate-bench-")) / "cluster")
        self._up: subprocess.Popen[bytes] | None = None
        self._restarted: list[subprocess.Popen[bytes]] = []

    @property
    def bootstrap(self) -> str:
        """Return the addresses of the brokers, "host:port,..."."""
        return self._directory.read()["bootstrap"]

    @property
    def controllers(self) -> str:
        """Return the addresses of the controllers, "host:port,..."."""
        return self._directory.read()["bootstrap_controllers"]

    @property
    def broker_ids(self) -> Sequence[int]:
        """Return the ids of the brokers."""
        return [node["id"] for node in self._directory.read()["brokers"]]

    def start(self) -> None:
        """Start an empty cluster and wait until it is ready. Raise RuntimeError if it does not get
        ready.
        """
        root = self._directory.root
        root.mkdir(parents=True)
        self.launched_s = time.monotonic()
        with open(root / "up.err", "wb") as errors:
            self._up = subprocess.Popen(
                (*self._program, "up", "--dir", str(root), "--port", "0"),
                stdout=subprocess.PIPE,
                stderr=errors,
            )
        assert self._up.stdout is not None
        line = self._up.stdout.readline()
        if not line.startswith(b"ready "):
            raise RuntimeError(f"`quorate up` did not get ready: see {root}/up.err")

    def stop(self) -> None:
        """Stop all nodes and delete their directories."""
        if self._up is not None:
            self._up.send_signal(signal.SIGTERM)
            try:
                self._up.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self._up.kill()
                self._up.wait()
            assert self._up.stdout is not None
            self._up.stdout.close()
        self.stop_nodes()
        shutil.rmtree(self._directory.root.parent, ignore_errors=True)

    def stop_nodes(self) -> None:
        """Stop the nodes that `restart` started, the last one first, and wait for each of them."""
        for node in reversed(self._restarted):
            node.terminate()
            node.wait()
        self._restarted.clear()

    def kill(self, node_id: int) -> float:
        """Send SIGKILL to a node, and return the monotonic time in seconds.

        Raise RuntimeError if cluster.json lists no pid of the node."""
        pid = self._node(node_id)["pid"]
        if pid is None:
            raise RuntimeError(f"node {node_id} does not run")
        os.kill(pid, signal.SIGKILL)
        return time.monotonic()

    def restart(self, node_id: int) -> None:
        """Start a killed node again, and wait until its process has registered its pid.

        The node may not be ready then. Raise RuntimeError after READY_TIMEOUT_S."""
        before = self._node(node_id)["pid"]
        with open(self._directory.node_log(node_id), "ab") as log:
            command = (*self._server, str(self.properties(node_id)))
            self._restarted.append(subprocess.Popen(command, stderr=log))
        deadline_s = time.monotonic() + READY_TIMEOUT_S
        while (pid := self._node(node_id)["pid"]) is None or pid == before or not alive(pid):
            if time.monotonic() > deadline_s:
                raise RuntimeError(f"node {node_id} did not start again")
            time.sleep(POLL_S)

    def node_ids(self) -> Sequence[int]:
        """Return the ids of all nodes."""
        return self._directory.node_ids()

    def properties(self, node_id: int) -> Path:
        """Return the path of a node's .properties file."""
        return self._directory.node_file(node_id)

    def pids(self) -> Sequence[int]:
        """Return the process ids in cluster.json, which may include nodes that were just killed."""
        return [node["pid"] for node in self._nodes() if node["pid"] is not None]

    def broker_directories(self) -> Sequence[Path]:
        """Return the log directories of the brokers."""
        return [Path(node["log_dir"]) for node in self._directory.read()["brokers"]]

    def _nodes(self) -> list[NodeEntry]:
        entry = self._directory.read()
        return [*entry["controllers"], *entry["brokers"]]

    def _node(self, node_id: int) -> NodeEntry:
        return next(node for node in self._nodes() if node["id"] == node_id)
