"""The processes of one cluster, and the faults that a schedule causes in them."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

from quorate.cli.cluster_dir import alive
from tests.clients.cluster import ProcessCluster, quorate, wait_for
from tests.system.faults import Action

GONE_TIMEOUT_S = 20.0
BROKEN = ("because an invariant is broken", "the node stops: ", "Traceback")
"""Texts in the log of a node that ends by itself, or meets an unexpected exception."""


class HurtCluster(ProcessCluster):
    """A cluster that a schedule of faults kills, stops and pauses.

    It knows the processes that should run, and therefore finds a node that ends by itself."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self._running: dict[int, int] = {}
        self._paused: set[int] = set()

    def start(self, *options: str) -> None:
        super().start(*options)
        self._running = {node["id"]: node["pid"] for node in self.nodes() if node["pid"]}

    def act(self, action: Action, node_id: int) -> None:
        actions: dict[Action, Callable[[int], None]] = {
            Action.KILL: lambda node_id: self._signal(node_id, signal.SIGKILL),
            Action.STOP: lambda node_id: self._signal(node_id, signal.SIGTERM),
            Action.START: self._start_again,
            Action.PAUSE: lambda node_id: self._signal(node_id, signal.SIGSTOP),
            Action.RESUME: lambda node_id: self._signal(node_id, signal.SIGCONT),
        }
        self.require_running(node_id, told_to_end=action is Action.START)
        actions[action](node_id)
        if action is Action.PAUSE:
            self._paused.add(node_id)
        else:
            self._paused.discard(node_id)

    def require_running(self, node_id: int, *, told_to_end: bool = False) -> None:
        assert told_to_end or alive(self._running[node_id]), (
            f"node {node_id} ended by itself\n{self.logs()}"
        )

    def require_all_running(self) -> None:
        for node_id in sorted(self._running):
            self.require_running(node_id)

    def require_nothing_broken(self) -> None:
        """Raise AssertionError if the log of a node has one of the texts of BROKEN."""
        for node_id in sorted(self._running):
            lines = self.node_log(node_id).splitlines()
            said = [line for line in lines if any(word in line for word in BROKEN)]
            assert not said, f"node {node_id}: {said[0]}\n{self.logs()}"

    def stop(self) -> None:
        for node_id in sorted(self._paused):
            self._signal(node_id, signal.SIGCONT)
        self._paused.clear()
        super().stop()

    def _signal(self, node_id: int, number: int) -> None:
        pid = self._running[node_id]
        if alive(pid):
            os.kill(pid, number)

    def _start_again(self, node_id: int) -> None:
        """Start a node again. Kill it first if it still runs because its stop takes too long."""
        pid = self._running[node_id]
        self._signal(node_id, signal.SIGKILL)
        wait_for(lambda: not alive(pid), f"node {node_id} is gone", GONE_TIMEOUT_S)
        with open(self.directory.node_log(node_id), "ab") as log:
            process = subprocess.Popen(
                quorate("server", str(self.directory.node_file(node_id))), stderr=log
            )
        self._restarted.append(process)
        self._pids.add(process.pid)
        self._running[node_id] = process.pid
