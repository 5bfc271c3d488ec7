"""The control of nodes by the commands of a nodes.toml.

A command that ends with status 0 proves nothing. A node has ended or stands still if its address
answers no ApiVersions request any more."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial

from quorate.cli.chaos.control.command_guard import CommandGuard
from quorate.cli.chaos.control.node_control import Effect, Ending
from quorate.cli.chaos.loading.node_file import (
    KILL,
    PAUSE,
    RESUME,
    START,
    STOP,
    ListedNode,
    NodeList,
)
from quorate.cli.client.client_properties import ClientSecurity
from quorate.cli.client.errors import Refused
from quorate.cli.client.secured_client import connected, with_tls
from quorate.quorum.clock import AsyncioClock
from quorate.quorum.rpc.kafka.client import ClientError, ClientSettings
from quorate.quorum.rpc.transport import AioTransport
from quorate.quorum.seams import Address, TransportError

ANSWER_S = 1.0
"""Time, in s, within which a node that works answers ApiVersions."""
SILENT_S = 10.0
"""Time, in s, within which a node must be silent after the command that kills or pauses it."""
POLL_S = 0.05
WATCH_S = 1.0
"""Time, in s, between two looks at a node."""
REFUSED_LOOKS = 3
"""The looks in a row at which a port must be closed until its node counts as ended."""
MAX_SAID_BYTES = 400
"""The end of a failed command's output that its error shows."""


PLAIN_TCP = ClientSecurity()


class CommandControl:
    """The nodes of a file. Bound: one guard process, and one task that watches the nodes."""

    def __init__(
        self, listed: NodeList, lease_ms: int, security: ClientSecurity = PLAIN_TCP
    ) -> None:
        self._nodes = listed.nodes
        self._security = security
        self._timeout_ms = listed.command_timeout_ms
        self._guard = CommandGuard(lease_ms, listed.command_timeout_ms)
        self._paused: set[int] = set()
        self._closed_looks = dict.fromkeys(listed.nodes, 0)
        self._starting: set[int] = set()
        """The nodes that a step has started and that have not accepted a connection since."""

    @asynccontextmanager
    async def leases(self) -> AsyncIterator[None]:
        """Run the guard and watch the nodes for the duration of the block."""
        await asyncio.to_thread(self._guard.start)
        watching = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
            await self._guard.close()

    def renew(self) -> None:
        """Renew the lease of the guard."""
        self._guard.renew()

    async def kill(self, node_id: int) -> Ending:
        """Run the command `kill`. The node must answer before it."""
        node = await self._serving(node_id)
        self._guard.owe(node_id, node.commands[START])
        await self._run(node, KILL)
        return partial(silent, node.address, KILL, self._security)

    async def stop(self, node_id: int, within_ms: int) -> Effect:
        """Run the command `stop`, which may take `within_ms`. The node must answer before it."""
        node = await self._serving(node_id)
        self._guard.owe(node_id, node.commands[START])
        await self._run(node, STOP, min(self._timeout_ms, within_ms) / 1000)
        return await silent(node.address, STOP, self._security)

    async def pause(self, node_id: int) -> Effect:
        """Run the command `pause`. The node must answer before it."""
        node = await self._serving(node_id)
        self._guard.owe(node_id, node.commands[RESUME])
        self._paused.add(node_id)
        await self._run(node, PAUSE)
        return await silent(node.address, PAUSE, self._security)

    async def resume(self, node_id: int) -> bool:
        """Run the command `resume`. Return True if the node was silent until now."""
        node = self._nodes[node_id]
        lasted = not await answers(node.address, self._security)
        await self._run(node, RESUME)
        self._paused.discard(node_id)
        self._guard.settle(node_id)
        return lasted

    async def start(self, node_id: int) -> bool:
        """Run the command `start`. Return True if the node was silent until now."""
        was_down = not await answers(self._nodes[node_id].address, self._security)
        self._starting.add(node_id)
        self._closed_looks[node_id] = 0
        await self._run(self._nodes[node_id], START)
        self._guard.settle(node_id)
        return was_down

    def runs(self, node_id: int) -> bool:
        """Return False if the node's port was closed at the last looks, although it had answered
        since its last start."""
        return node_id in self._starting or self._closed_looks[node_id] < REFUSED_LOOKS

    @property
    def paused(self) -> list[int]:
        """Return the ids of the paused nodes."""
        return sorted(self._paused)

    @property
    def command_ms(self) -> int:
        """Return the time that a command may take."""
        return self._timeout_ms

    def log_of(self, node_id: int) -> str:
        """Return a text, because the place of the log is not known."""
        return f"the log of node {node_id}"

    async def _serving(self, node_id: int) -> ListedNode:
        """Return the node. Raise Refused if it does not answer, so no command can affect it."""
        node = self._nodes[node_id]
        if not await answers(node.address, self._security):
            raise Refused(f"node {node_id} does not answer at {node.address}")
        return node

    async def _run(self, node: ListedNode, name: str, limit_s: float | None = None) -> None:
        """Run a command of the node. Raise Refused if it fails or takes too long."""
        limit_s = limit_s or self._timeout_ms / 1000
        loop = asyncio.get_running_loop()

        def told(pid: int, runs: bool) -> None:
            loop.call_soon_threadsafe(self._guard.began if runs else self._guard.ended, pid)

        await asyncio.to_thread(run_command, node, name, limit_s, told)

    async def _watch(self) -> None:
        """Look at all nodes until cancelled."""
        while True:
            await asyncio.gather(*map(self._look, self._nodes.values()))
            await asyncio.sleep(WATCH_S)

    async def _look(self, node: ListedNode) -> None:
        """Count the looks in a row at which the node's port is closed."""
        if not await accepts(node.address):
            self._closed_looks[node.id] += 1
            return
        self._closed_looks[node.id] = 0
        self._starting.discard(node.id)


def nothing(pid: int, runs: bool) -> None:
    """Do nothing."""


def run_command(
    node: ListedNode, name: str, limit_s: float, told: Callable[[int, bool], None] = nothing
) -> None:
    """Run a command. Block for `limit_s` at most, and then kill it with its children.

    `told` takes the pid of its process with True, and again with False when it has ended, from this
    thread. Its output goes to a file, because a node that the command has started may keep it open.
    Raise Refused if the command fails or takes too long."""
    with tempfile.TemporaryFile() as output:
        try:
            process = subprocess.Popen(
                node.commands[name],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        except OSError as error:
            raise Refused(f"node {node.id}: {name}: {error}") from None
        told(process.pid, True)
        try:
            status = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise Refused(f"node {node.id}: {name} did not end within {limit_s:.0f} s") from None
        finally:
            told(process.pid, False)
        if status:
            size = output.seek(0, os.SEEK_END)
            output.seek(max(0, size - MAX_SAID_BYTES))
            said = output.read().decode("utf-8", "replace").strip()
            raise Refused(f"node {node.id}: {name} ended with status {status}: {said}")


async def silent(address: Address, command: str, security: ClientSecurity = PLAIN_TCP) -> Effect:
    """Wait for SILENT_S until the address answers no more."""
    deadline_s = time.monotonic() + SILENT_S
    while answering := await answers(address, security):
        if time.monotonic() > deadline_s:
            break
        await asyncio.sleep(POLL_S)
    text = f"{address} {'still answers' if answering else 'does not answer'} after `{command}`"
    return Effect(int(not answering), text)


async def answers(address: Address, security: ClientSecurity = PLAIN_TCP) -> bool:
    """Return True if the node at the address answers ApiVersions within ANSWER_S, after the TLS
    handshake of `security`. Nodes answer that request without a login."""
    settings = ClientSettings(client_id="quorate-chaos", connect_timeout_ms=int(ANSWER_S * 1000))
    transport = with_tls(AioTransport(), security)
    try:
        async with asyncio.timeout(ANSWER_S):
            found = await connected(transport, AsyncioClock(), address, settings, login=None)
    except (TimeoutError, ClientError, TransportError):
        return False
    found.client.close()
    return True


async def accepts(address: Address) -> bool:
    """Return False if the address refuses a connection. No answer at all is no refusal."""
    try:
        async with asyncio.timeout(ANSWER_S):
            _, writer = await asyncio.open_connection(address.host, address.port)
    except ConnectionRefusedError:
        return False
    except (TimeoutError, OSError):
        return True
    writer.close()
    return True
