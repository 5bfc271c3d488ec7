"""The cluster of a scenario run: the processes of `quorate up`, addressed by node id.

All calls that wait for a node block their thread, for a bounded time. `stop` reaps the child
processes. With `faults`, nodes are started and restarted with `--faults`.

A cluster that `start` has started ends with this process, however the process ends: this process
holds the other end of the pipe that is the standard input of `quorate up --until-eof`."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from quorate.cli.chaos.control.cluster_requests import ClusterRequests
from quorate.cli.client.client_file import ClientFile
from quorate.cli.client.errors import Refused
from quorate.cli.nodes.cluster_dir import ClusterDir, ClusterEntry, NodeEntry, alive
from quorate.config.listeners import parse_servers

QUORATE = (sys.executable, "-m", "quorate.cli")
POLL_S = 0.02
START_S = 120.0
"""The time, in s, within which `start` must have started a cluster."""
STOP_S = 120.0
"""The time, in s, within which `quorate down` must have stopped it."""
KILL_S = 5.0
"""The time, in s, for which `stop` waits for the end of a killed child."""


class ProcessCluster(ClusterRequests):
    """A cluster of processes in one directory."""

    def __init__(
        self, directory: Path, *, faults: bool = False, client_file: ClientFile | None = None
    ) -> None:
        self.client_file = client_file or ClientFile()
        self.directory = ClusterDir(directory)
        self._faults = ("--faults",) if faults else ()
        self._children: dict[int, subprocess.Popen[bytes]] = {}
        """The last process of each node that `restart` has started."""
        self._lifeline: int | None = None

    @property
    def entry(self) -> ClusterEntry:
        """Return the content of cluster.json."""
        return self.directory.read()

    @property
    def servers(self) -> tuple[tuple[str, int], ...]:
        """Return the addresses of the brokers."""
        return parse_servers("bootstrap", self.entry["bootstrap"].split(","))

    def start(self, *options: str) -> float:
        """Start a new cluster and return the seconds until it was ready.

        A cluster in the directory is stopped, and the directory is deleted first. `options` are
        those of `quorate up`. Raise Refused if the cluster does not start within START_S."""
        if self.directory.file.exists():
            self._down()
        shutil.rmtree(self.directory.root, ignore_errors=True)
        begin_s = time.monotonic()
        up = (*QUORATE, "up", "--dir", self.directory.root, "--port", "0", "--detach")
        reading, self._lifeline = os.pipe()
        try:
            started = subprocess.run(
                (*up, "--until-eof", *self._faults, *options),
                check=False,
                stdin=reading,
                stdout=subprocess.DEVNULL,
                timeout=START_S,
            )
        except subprocess.TimeoutExpired:
            raise Refused(
                f"the cluster in {self.directory.root} did not start within {START_S:.0f} s"
            ) from None
        finally:
            os.close(reading)
        if started.returncode:
            raise Refused(f"the cluster in {self.directory.root} did not start")
        return time.monotonic() - begin_s

    def stop(self) -> None:
        """Stop all nodes and reap the child processes, within STOP_S. Raise nothing.

        Children that do not end are killed."""
        self._down()
        if self._lifeline is not None:
            os.close(self._lifeline)
            self._lifeline = None
        for child in self._children.values():
            try:
                child.wait(KILL_S)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()

    def _down(self) -> None:
        """Run `quorate down`, for STOP_S at most. Its output must not precede the JSON of a run."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run(
                (*QUORATE, "down", "--dir", self.directory.root),
                check=False,
                stdout=subprocess.DEVNULL,
                timeout=STOP_S,
            )

    def node(self, node_id: int) -> NodeEntry:
        """Return the node's entry in cluster.json. Raise Refused if there is none."""
        nodes = (*self.entry["controllers"], *self.entry["brokers"])
        found = next((node for node in nodes if node["id"] == node_id), None)
        if found is None:
            known = ", ".join(str(node["id"]) for node in nodes)
            raise Refused(f"node {node_id}: the cluster has no such node; its nodes are {known}")
        return found

    def kill(self, node_id: int) -> float:
        """Send SIGKILL to the node, and return the time on the monotonic clock, in s.

        Raise Refused if the node does not run."""
        os.kill(self.pid(node_id), signal.SIGKILL)
        return time.monotonic()

    def terminate(self, node_id: int, timeout_s: float) -> bool:
        """Send SIGTERM and return True when the process has ended, or False after `timeout_s`.

        Raise Refused if the node does not run."""
        pid = self.pid(node_id)
        os.kill(pid, signal.SIGTERM)
        deadline_s = time.monotonic() + timeout_s
        while alive(pid):
            if time.monotonic() > deadline_s:
                return False
            time.sleep(POLL_S)
        return True

    def restart(self, node_id: int) -> None:
        """Start the node as a new process, and return immediately.

        Do nothing if the node runs, for example because a supervisor restarted it."""
        if alive(self.node(node_id)["pid"]):
            return
        file = self.directory.node_file(node_id)
        with open(self.directory.node_log(node_id), "ab") as log:
            child = subprocess.Popen(
                (*QUORATE, "server", file, *self._faults),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._children[node_id] = child

    def runs(self, node_id: int) -> bool:
        """Return True if the node's process runs. It need not have written its pid yet."""
        child = self._children.get(node_id)
        return (child is not None and child.poll() is None) or alive(self.node(node_id)["pid"])

    def pid(self, node_id: int) -> int:
        """Return the pid of the node's process. Raise Refused if the node does not run."""
        pid = self.node(node_id)["pid"]
        if not alive(pid):
            raise Refused(f"node {node_id} does not run")
        assert pid is not None
        return pid
