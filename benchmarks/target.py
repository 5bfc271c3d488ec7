"""What is measured: a cluster of ours, one of Apache Kafka's, or one that somebody else runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, TypeGuard

PSS = b"Pss:"


class Target(Protocol):
    name: str

    @property
    def bootstrap(self) -> str: ...


class Cluster(Target, Protocol):
    """One that the benchmark starts, hurts and stops."""

    launched_s: float
    """When the six processes were told to start (monotonic)."""

    def start(self) -> None:
        """An empty cluster; returns when every broker is seen."""

    def stop(self) -> None: ...

    def kill(self, node_id: int) -> float:
        """SIGKILL; the moment of it."""

    def restart(self, node_id: int) -> None: ...

    def pids(self) -> Sequence[int]:
        """Of the six nodes."""


class Remote:
    """Given by --peer: it can be loaded, not killed."""

    def __init__(self, bootstrap: str) -> None:
        self.name = "peer"
        self.bootstrap = bootstrap


def is_cluster(target: Target) -> TypeGuard[Cluster]:
    return not isinstance(target, Remote)


def pss_mb(pids: Sequence[int]) -> float:
    """Proportional set size: what processes share is counted once."""
    total_kb = 0
    for pid in pids:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_bytes().splitlines():
            if line.startswith(PSS):
                total_kb += int(line.split()[1])
    return total_kb * 1024 / 1e6
