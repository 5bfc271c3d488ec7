"""The systems under test: a cluster of Quorate, one of Apache Kafka, or one that already runs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, TypeGuard

PSS = b"Pss:"


class Target(Protocol):
    """A system that can be loaded."""

    name: str

    @property
    def bootstrap(self) -> str:
        """Return the addresses of the brokers, "host:port,..."."""
        ...


class Cluster(Target, Protocol):
    """A cluster of six nodes that the benchmark starts, kills and stops."""

    launched_s: float
    """The monotonic time in seconds at which the six processes were started."""

    @property
    def controllers(self) -> str:
        """Return the addresses of the controllers, "host:port,..."."""

    @property
    def broker_ids(self) -> Sequence[int]:
        """Return the ids of the brokers."""
        ...

    def start(self) -> None:
        """Start an empty cluster. Return when every broker is visible to clients."""

    def stop(self) -> None:
        """Stop all nodes and delete their directories."""
        ...

    def kill(self, node_id: int) -> float:
        """Send SIGKILL to a node, and return the monotonic time in seconds."""

    def restart(self, node_id: int) -> None:
        """Start a killed node again. The node may not be ready on return."""
        ...

    def pids(self) -> Sequence[int]:
        """Return the process ids of the nodes."""
        ...

    def broker_directories(self) -> Sequence[Path]:
        """Return the log directories of the brokers."""


class Remote:
    """A running cluster, given by --peer. It can be loaded, but not killed."""

    def __init__(self, bootstrap: str) -> None:
        self.name = "peer"
        self.bootstrap = bootstrap


def is_cluster(target: Target) -> TypeGuard[Cluster]:
    """Return True if the benchmark can start and kill the target."""
    return not isinstance(target, Remote)


def pss_mb(pids: Sequence[int]) -> float:
    """Return the proportional set size of the processes in MB, which counts shared pages once."""
    total_kb = 0
    for pid in pids:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_bytes().splitlines():
            if line.startswith(PSS):
                total_kb += int(line.split()[1])
    return total_kb * 1024 / 1e6


class CpuMeter:
    """Measures the CPU time of a cluster's nodes since its creation.

    CPU time varies less than a rate if other processes use the same cores. For a remote cluster
    there is nothing to measure."""

    def __init__(self, target: Target) -> None:
        self._pids = target.pids() if is_cluster(target) else ()
        self._before = [cpu_s(pid) for pid in self._pids]

    def used_s(self) -> list[float]:
        """Return the CPU time of each node in seconds, or an empty list for a remote cluster.

        The nodes must be the processes that ran when the meter was created."""
        return [cpu_s(pid) - b for pid, b in zip(self._pids, self._before, strict=True)]


def cpu_s(pid: int) -> float:
    """Return the CPU time of a process in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    user_ticks, system_ticks = int(fields[11]), int(fields[12])
    return (user_ticks + system_ticks) / os.sysconf("SC_CLK_TCK")
