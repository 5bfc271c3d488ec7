"""The nodes of a soak run: which of them we stopped, which ended by themselves, their memory."""

from __future__ import annotations

import json
import statistics
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from quorate.cli.nodes.cluster_dir import alive
from quorate.quorum.seams import Address
from tests.attacks.newcomers import Disturbances
from tests.attacks.nodes import memory_bytes
from tests.clients.cluster import run_quorate
from tests.system.faults import ENDS, Action
from tests.system.nodes import BROKEN, HurtCluster

SAMPLE_S = 2.0
MB = 1 << 20
MAX_GROWTH = 1.10
NOISE_MB = 8
"""A level that differs by no more than this is the same, whatever its percentage is."""
LOG_LINES = 5


class SoakCluster(HurtCluster):
    """A `HurtCluster` that tells the nodes that it stopped from those that ended by themselves."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self._stopped: set[int] = set()
        self.disturbances = Disturbances()
        self.starts: dict[int, int] = {}

    def act(self, action: Action, node_id: int, peers: Sequence[int] = ()) -> None:
        if action in (Action.KILL, Action.STOP):
            self._stopped.add(node_id)
        address = self._address(node_id)
        if action in ENDS:
            self.disturbances.begin(address)
        super().act(action, node_id, peers)
        if action not in ENDS:
            self.disturbances.mended(address)
        if action is Action.START:
            self._stopped.discard(node_id)
            self.starts[node_id] = self.starts.get(node_id, 0) + 1

    def ended_by_themselves(self) -> list[int]:
        return [
            node_id
            for node_id, pid in sorted(self._running.items())
            if node_id not in self._stopped and not alive(pid)
        ]

    def revive(self, node_id: int) -> None:
        """Start a node again that ended by itself, so that the run goes on."""
        self.disturbances.begin(self._address(node_id))
        self.act(Action.START, node_id)

    def _address(self, node_id: int) -> Address:
        node = self.node(node_id)
        return Address(node["host"], node["port"])

    def pids(self) -> dict[int, int]:
        return dict(self._running)

    def last_lines(self, node_id: int) -> str:
        return " | ".join(self.node_log(node_id).splitlines()[-LOG_LINES:])

    def broken_lines(self) -> list[str]:
        """Return what the nodes' logs say that no log may say, one line for each node and kind."""
        found: dict[tuple[int, str], str] = {}
        for node_id in sorted(self._running):
            for line in self.node_log(node_id).splitlines():
                for word in BROKEN:
                    if word in line:
                        found.setdefault((node_id, word), f"node {node_id}: {line}")
        return list(found.values())

    def metadata_end(self) -> int:
        """Return the offset that every node's copy of the metadata log has; 0 if one is missing.

        Nodes that an attacker invented are left out."""
        done = run_quorate(
            *("metadata-quorum", "--bootstrap-server", self.bootstrap),
            *("describe", "--replication", "--format", "json"),
        )
        rows = json.loads(done.stdout) if done.returncode == 0 else []
        ends = {int(row["NodeId"]): int(row["LogEndOffset"]) for row in rows}
        ours = [ends.get(node["id"], 0) for node in self.nodes()]
        return max(0, min(ours))


@dataclass(slots=True)
class Level:
    """One node's resident memory, in MB, at the start and at the end.

    `kind_start_mb` is the highest level at the start of any node of its kind. The end is compared
    with that one, because leadership, and the state that it needs, moves between nodes."""

    node_id: int
    start_mb: float
    kind_start_mb: float
    end_mb: float
    peak_mb: float
    starts: int
    age_s: float

    @property
    def change(self) -> float:
        return self.end_mb / self.start_mb if self.start_mb else 0.0

    @property
    def grew(self) -> bool:
        highest_mb = self.kind_start_mb
        return self.end_mb > highest_mb * MAX_GROWTH and self.end_mb - highest_mb > NOISE_MB

    def line(self) -> str:
        return (
            f"node {self.node_id}: {self.start_mb:7.1f} MB at the start, {self.end_mb:7.1f} at the "
            f"end ({(self.change - 1) * 100:+.1f} %), peak {self.peak_mb:7.1f}, started again "
            f"{self.starts} times, last {self.age_s:.0f} s ago"
        )


@dataclass(slots=True)
class Memory:
    """Samples of every node's memory: (time, node, pid, bytes)."""

    samples: list[tuple[float, int, int, int]] = field(default_factory=list)

    def level_mb(self, node_id: int, begin_s: float, end_s: float) -> float:
        """Return the median of the samples between two moments; 0 without any."""
        sizes = [
            size
            for when, node, _, size in self.samples
            if node == node_id and begin_s <= when <= end_s and size
        ]
        return statistics.median(sizes) / MB if sizes else 0.0

    def peak_mb(self, node_id: int) -> float:
        return max((size for _, node, _, size in self.samples if node == node_id), default=0) / MB

    def age_s(self, node_id: int) -> float:
        """Return for how long the node's last process was sampled."""
        last = [(when, pid) for when, node, pid, _ in self.samples if node == node_id]
        if not last:
            return 0.0
        return last[-1][0] - min(when for when, pid in last if pid == last[-1][1])

    def latest_mb(self) -> dict[int, int]:
        return {node: size // MB for _, node, _, size in self.samples[-12:]}


@contextmanager
def sampled(cluster: SoakCluster) -> Iterator[Memory]:
    memory = Memory()
    stopping = threading.Event()

    def work() -> None:
        while not stopping.wait(SAMPLE_S):
            now_s = time.monotonic()
            for node_id, pid in cluster.pids().items():
                memory.samples.append((now_s, node_id, pid, memory_bytes(pid)))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield memory
    finally:
        stopping.set()
        thread.join()
