"""What is measured: a cluster of ours, one of Apache Kafka's, or one that somebody else runs."""

from __future__ import annotations

import os
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

    @property
    def controllers(self) -> str:
        """Their addresses, as `bootstrap` gives the brokers'."""

    @property
    def broker_ids(self) -> Sequence[int]: ...

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


class CpuMeter:
    """CPU time of a cluster's nodes since it was made: steadier than a rate where others work on
    the same cores. Nothing for a cluster that is not ours."""

    def __init__(self, target: Target) -> None:
        self._pids = target.pids() if is_cluster(target) else ()
        self._before = [cpu_s(pid) for pid in self._pids]

    def used_s(self) -> list[float]:
        """Of each node."""
        return [cpu_s(pid) - b for pid, b in zip(self._pids, self._before, strict=True)]


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    user_ticks, system_ticks = int(fields[11]), int(fields[12])
    return (user_ticks + system_ticks) / os.sysconf("SC_CLK_TCK")
