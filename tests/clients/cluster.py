"""A real cluster of real processes, `quorate up` in a directory of its own, for tests.

What a test starts ends with it, whatever happened: nodes are killed by the ids that cluster.json
and our own children gave us, never by name.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from quorate.cli.nodes.cluster_dir import ClusterDir, ClusterEntry, NodeEntry, alive

READY_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 20.0
WAIT_TIMEOUT_S = 30.0
POLL_S = 0.02
LOG_TAIL_LINES = 60

T = TypeVar("T")


def wait_for(condition: Callable[[], T | None], what: str, timeout_s: float = WAIT_TIMEOUT_S) -> T:
    """Wait for the first true value of `condition`, and return it."""
    deadline = time.monotonic() + timeout_s
    while not (value := condition()):
        assert time.monotonic() < deadline, f"not within {timeout_s:.0f} s: {what}"
        time.sleep(POLL_S)
    return value


def quorate(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "quorate.cli", *arguments]


def run_quorate(*arguments: str, timeout_s: float = 30.0) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        quorate(*arguments), capture_output=True, text=True, timeout=timeout_s, check=False
    )


class ProcessCluster:
    """The processes of `quorate up` in one directory. `stop` ends each process of it."""

    def command(self, *arguments: str) -> list[str]:
        """Return the command of a process with nodes."""
        return quorate(*arguments)

    def __init__(self, root: Path) -> None:
        self.directory = ClusterDir(root)
        self._supervisor: subprocess.Popen[bytes] | None = None
        self._restarted: list[subprocess.Popen[bytes]] = []
        self._pids: set[int] = set()

    def start(self, *options: str) -> None:
        root = self.directory.root
        root.mkdir(parents=True, exist_ok=True)
        output = root / "up.out"
        with open(output, "wb") as out, open(root / "up.err", "wb") as err:
            self._supervisor = subprocess.Popen(
                self.command("up", "--dir", str(root), "--port", "0", *options),
                stdout=out,
                stderr=err,
            )
        supervisor = self._supervisor

        def ready() -> bool:
            assert supervisor.poll() is None, f"`up` ended\n{self.logs()}"
            return "ready " in output.read_text()

        wait_for(ready, "`quorate up` says ready", READY_TIMEOUT_S)
        self._pids |= {node["pid"] for node in self.nodes() if node["pid"]}

    def entry(self) -> ClusterEntry:
        return self.directory.read()

    def nodes(self) -> list[NodeEntry]:
        entry = self.entry()
        return [*entry["controllers"], *entry["brokers"]]

    def node(self, node_id: int) -> NodeEntry:
        return next(node for node in self.nodes() if node["id"] == node_id)

    @property
    def bootstrap(self) -> str:
        return self.entry()["bootstrap"]

    @property
    def bootstrap_controllers(self) -> str:
        return self.entry()["bootstrap_controllers"]

    def kill(self, node_id: int) -> None:
        """End the node by SIGKILL, so that it flushes and announces nothing."""
        pid = self.node(node_id)["pid"]
        assert pid is not None, f"node {node_id} does not run"
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not alive(pid), f"node {node_id} is gone")

    def restart(self, node_id: int) -> None:
        """Start a node that was killed again; it is running when cluster.json has its new id."""
        before = self.node(node_id)["pid"]
        with open(self.directory.node_log(node_id), "ab") as log:
            process = subprocess.Popen(
                self.command("server", str(self.directory.node_file(node_id))), stderr=log
            )
        self._restarted.append(process)
        self._pids.add(process.pid)
        wait_for(
            lambda: (pid := self.node(node_id)["pid"]) and pid != before and alive(pid),
            f"node {node_id} runs again",
        )

    def is_whole(self) -> bool:
        """Every replica is in its ISR; one that was killed a moment ago may still be."""
        done = run_quorate(
            *("topics", "--bootstrap-server", self.bootstrap, "--describe"),
            *("--under-replicated-partitions", "--format", "json"),
        )
        return done.returncode == 0 and json.loads(done.stdout) == []

    def node_log(self, node_id: int) -> str:
        return self.directory.node_log(node_id).read_text()

    def stop(self) -> None:
        """Stop the cluster cleanly. Kill the processes that do not end in time."""
        supervisor = self._supervisor
        if supervisor is not None:
            supervisor.send_signal(signal.SIGTERM)
            try:
                supervisor.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                supervisor.kill()
                supervisor.wait()
        for pid in sorted(self._pids):
            if alive(pid) and self._is_ours(pid):
                os.kill(pid, signal.SIGKILL)
        for process in self._restarted:
            process.wait()

    def _is_ours(self, pid: int) -> bool:
        """An id may have been given to another process meanwhile."""
        try:
            arguments = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            return False
        return str(self.directory.root).encode() in arguments

    def logs(self) -> str:
        """The end of every log, for the report of a failed test."""
        root = self.directory.root
        files = [root / "up.out", root / "up.err", *sorted(root.glob("nodes/*/node.log"))]
        return "\n".join(f"--- {file.relative_to(root)}\n{tail(file)}" for file in files)


def tail(file: Path) -> str:
    if not file.exists():
        return ""
    return "\n".join(file.read_text(errors="replace").splitlines()[-LOG_TAIL_LINES:])


@contextmanager
def running(root: Path, *options: str) -> Iterator[ProcessCluster]:
    cluster = ProcessCluster(root)
    try:
        cluster.start(*options)
        yield cluster
    finally:
        cluster.stop()
