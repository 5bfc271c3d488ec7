"""The processes of one cluster, and the faults that a schedule causes in them."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from quorate.cli.nodes.cluster_dir import alive
from tests.clients.cluster import POLL_S, ProcessCluster, wait_for
from tests.system.faults import ENDS, Action, Step

GONE_TIMEOUT_S = 20.0
BROKEN = ("because an invariant is broken", "the node stops: ", "Traceback")
"""Texts in the log of a node that ends by itself, or meets an unexpected exception."""
SIGNALLED = "received a signal to stop"
EFFECT_S = 15.0
"""The first faults of a kind last so much longer, at most, until one of them has an effect."""


class HurtCluster(ProcessCluster):
    """A cluster that a schedule of faults kills, stops and pauses.

    It knows the processes that should run, and therefore finds a node that ends by itself."""

    disks_and_links = False
    """True if this cluster can also hurt disks and links."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.effects: Counter[Action] = Counter()
        """The number of faults of each kind that the nodes have noticed."""
        self._running: dict[int, int] = {}
        self._paused: set[int] = set()
        self._stopping: dict[int, int] = {}
        """The length of its log, by node, when it got its signal to stop."""

    def start(self, *options: str) -> None:
        super().start(*options)
        self._running = {node["id"]: node["pid"] for node in self.nodes() if node["pid"]}

    def act(self, action: Action, node_id: int, peers: Sequence[int] = ()) -> None:
        actions: dict[Action, Callable[[int], None]] = {
            Action.KILL: self._kill,
            Action.STOP: self._stop,
            Action.START: self._start_again,
            Action.PAUSE: self._pause,
            Action.RESUME: self._resume,
        }
        self.require_running(node_id, told_to_end=action is Action.START)
        actions[action](node_id)

    def require_running(self, node_id: int, *, told_to_end: bool = False) -> None:
        assert told_to_end or alive(self._running[node_id]), (
            f"node {node_id} ended by itself\n{self.logs()}"
        )

    def await_first(self, kind: Action, had_effect: Callable[[], bool]) -> bool:
        """Return True if the fault had an effect. Wait for it if no fault of its kind had one."""
        deadline_s = time.monotonic() + EFFECT_S
        while not had_effect():
            if self.effects[kind] or time.monotonic() > deadline_s:
                return False
            time.sleep(POLL_S)
        return True

    def require_all_running(self) -> None:
        for node_id in sorted(self._running):
            self.require_running(node_id)

    def require_nothing_broken(self) -> None:
        """Raise AssertionError if the log of a node has one of the texts of BROKEN."""
        for node_id in sorted(self._running):
            said = broken_lines(self.node_log(node_id))
            assert not said, f"node {node_id}: {said[0]}\n{self.logs()}"

    def require_effects(self, steps: Iterable[Step]) -> None:
        """Raise AssertionError if a kind of fault had no effect, however often it was drawn."""
        drawn = Counter(step.action for step in steps if step.action in ENDS)
        without = [kind.value for kind in drawn if not self.effects[kind]]
        assert not without, f"without any effect: {without}"

    def stop(self) -> None:
        for node_id in sorted(self._paused):
            self._signal(node_id, signal.SIGCONT)
        self._paused.clear()
        super().stop()

    def _signal(self, node_id: int, number: int) -> None:
        pid = self._running[node_id]
        if alive(pid):
            os.kill(pid, number)

    def _kill(self, node_id: int) -> None:
        self._end(node_id)
        self.effects[Action.KILL] += 1

    def _stop(self, node_id: int) -> None:
        self._stopping[node_id] = len(self.node_log(node_id))
        self._signal(node_id, signal.SIGTERM)

    def _pause(self, node_id: int) -> None:
        self._signal(node_id, signal.SIGSTOP)
        self._paused.add(node_id)
        wait_for(lambda: is_stopped(self._running[node_id]), f"node {node_id} is paused")
        self.effects[Action.PAUSE] += 1

    def _resume(self, node_id: int) -> None:
        self._signal(node_id, signal.SIGCONT)
        self._paused.discard(node_id)

    def _end(self, node_id: int) -> None:
        """Kill a node. Return when it is gone."""
        pid = self._running[node_id]
        self._signal(node_id, signal.SIGKILL)
        wait_for(lambda: not alive(pid), f"node {node_id} is gone", GONE_TIMEOUT_S)
        self._paused.discard(node_id)

    def _start_again(self, node_id: int) -> None:
        """Start a node again. Kill it first if it still runs because its stop takes too long."""
        log_length = self._stopping.pop(node_id, None)

        def stops() -> bool:
            ended = not alive(self._running[node_id])
            return ended or SIGNALLED in self.node_log(node_id)[log_length:]

        if log_length is not None and self.await_first(Action.STOP, stops):
            self.effects[Action.STOP] += 1
        self._end(node_id)
        with open(self.directory.node_log(node_id), "ab") as log:
            process = subprocess.Popen(
                self.command("server", str(self.directory.node_file(node_id))), stderr=log
            )
        self._restarted.append(process)
        self._pids.add(process.pid)
        self._running[node_id] = process.pid


def broken_lines(log: str) -> list[str]:
    """Return the lines of a log that have one of the texts of BROKEN."""
    return [line for line in log.splitlines() if any(word in line for word in BROKEN)]


def is_stopped(pid: int) -> bool:
    """Return True if a SIGSTOP has stopped the process."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return False
    return state == "T"
