"""The control of the nodes of `quorate up` by signals to their processes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from quorate.cli.chaos.control.node_control import Effect, Ending
from quorate.cli.chaos.control.pause_guard import Pauses
from quorate.cli.chaos.control.process_cluster import ProcessCluster
from quorate.cli.nodes.cluster_dir import alive

ENDED_S = 10.0
"""Time, in s, within which a process must have ended after SIGKILL."""
POLL_S = 0.005


class SignalControl:
    """The processes of a local cluster. The kernel says whether a process ended or is stopped."""

    def __init__(self, cluster: ProcessCluster, lease_ms: int) -> None:
        self._cluster = cluster
        self._pauses = Pauses(lease_ms)

    @asynccontextmanager
    async def leases(self) -> AsyncIterator[None]:
        """Do nothing, because each pause has a guard of its own."""
        yield

    def renew(self) -> None:
        """Renew the leases of all pauses."""
        self._pauses.renew()

    async def kill(self, node_id: int) -> Ending:
        """Send SIGKILL. Raise Refused if the node does not run."""
        pid = self._cluster.pid(node_id)
        self._cluster.kill(node_id)
        return partial(ended, pid)

    async def stop(self, node_id: int, within_ms: int) -> Effect:
        """Send SIGTERM, and wait until the process has ended."""
        pid = self._cluster.pid(node_id)
        gone = await asyncio.to_thread(self._cluster.terminate, node_id, within_ms / 1000)
        return Effect(int(gone), f"process {pid} {'ended' if gone else 'still runs'}")

    async def pause(self, node_id: int) -> Effect:
        """Send SIGSTOP through a guard process."""
        pid = self._cluster.pid(node_id)
        stopped = await asyncio.to_thread(self._pauses.pause, node_id, pid)
        text = f"process {pid} {'is stopped' if stopped else 'is not stopped'} by SIGSTOP"
        return Effect(int(stopped), text)

    async def resume(self, node_id: int) -> bool:
        """Send SIGCONT."""
        return await asyncio.to_thread(self._pauses.resume, node_id)

    async def start(self, node_id: int) -> bool:
        """Start the process, if it does not run."""
        was_down = not self._cluster.runs(node_id)
        await asyncio.to_thread(self._cluster.restart, node_id)
        return was_down

    def runs(self, node_id: int) -> bool:
        """Return True if the node's process runs."""
        return self._cluster.runs(node_id)

    @property
    def paused(self) -> list[int]:
        """Return the ids of the paused nodes."""
        return self._pauses.nodes

    @property
    def command_ms(self) -> int:
        """Return 0."""
        return 0

    def log_of(self, node_id: int) -> str:
        """Return the path of the node's log."""
        return str(self._cluster.directory.node_log(node_id))


async def ended(pid: int) -> Effect:
    """Wait for ENDED_S until the process has ended."""
    deadline_s = time.monotonic() + ENDED_S
    while not (gone := not alive(pid)):
        if time.monotonic() > deadline_s:
            break
        await asyncio.sleep(POLL_S)
    return Effect(int(gone), f"process {pid} {'ended' if gone else 'still runs'}")
