"""A process of TCP proxies, one for each pair of ends and each direction of connecting.

`python -m tests.system.proxies` takes one JSON object per line, and answers each with one:

- `{"pairs": [[source, target], ...]}`: listen on a free port for each pair. `{"ports": [...]}`.
- `{"targets": [[source, target, port], ...]}`: the ports of the targets. `{}`.
- `{"links": [[source, target, {"cut": false, "there": true, "back": false, "delay_ms": 0}], ...]}`:
  replace the rules of these links. `{"effects": N}` counts what the replaced rules did.

`there` holds the bytes to the target, and `back` those to the source. Held bytes, and the end of a
connection behind them, pass when the rule ends. A cut resets all connections and every new one.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import sys
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

HOST = "127.0.0.1"
HIGH_BYTES = 1 << 20
"""A direction that holds more bytes reads no more: the sender's kernel notices."""
RESET = struct.pack("ii", 1, 0)
"""SO_LINGER without a time: closing resets the connection."""


def close(transport: asyncio.Transport) -> None:
    """Let the kernel send what it has, and then the end."""
    transport.close()


def reset(transport: asyncio.Transport) -> None:
    """Let the kernel send a reset, if the connection is still there."""
    of_kernel = transport.get_extra_info("socket")
    with suppress(OSError):
        of_kernel.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    transport.abort()


@dataclass(frozen=True, slots=True)
class Rule:
    cut: bool = False
    there: bool = False
    back: bool = False
    delay_ms: int = 0


class Link:
    """All connections that one source opens to one target."""

    def __init__(self) -> None:
        self.rule = Rule()
        self.effects = 0
        self.connections: dict[Connection, None] = {}
        self.port = 0
        """Of the target. 0: not known yet."""

    def accept(self) -> Incoming:
        return Incoming(self)

    async def dial(self, connection: Connection) -> None:
        """Connect to the target. If it does not listen, reset the source's connection."""
        try:
            loop = asyncio.get_running_loop()
            await loop.create_connection(lambda: End(connection.back), HOST, self.port)
        except OSError:
            connection.end(reset)

    def apply(self, rule: Rule) -> int:
        """Replace the rule. Return the number of effects of the rule before it."""
        effects, self.effects, self.rule = self.effects, 0, rule
        for connection in list(self.connections):
            if rule.cut:
                self.effects += 1
                connection.end(reset)
            else:
                connection.there.pump()
                connection.back.pump()
        return effects


class Direction:
    """The bytes of a connection in one direction, from the end that has them to the other end."""

    def __init__(self, connection: Connection, held: Callable[[Rule], bool]) -> None:
        self.connection = connection
        self.reads_from: asyncio.Transport | None = None
        self.writes_to: asyncio.Transport | None = None
        self._held = held
        self._queue: deque[tuple[float, bytes | None]] = deque()
        self._queued_bytes = 0
        self._timer: asyncio.TimerHandle | None = None

    def take(self, data: bytes | None) -> None:
        """Pass the bytes on as the rule says. None is the end of the bytes."""
        link = self.connection.link
        rule = link.rule
        if self._held(rule) or rule.delay_ms:
            link.effects += 1
        now_s = asyncio.get_running_loop().time()
        self._queue.append((now_s + rule.delay_ms / 1000, data))
        self._queued_bytes += len(data or b"")
        self.pump()
        if self._queued_bytes > HIGH_BYTES and self.reads_from is not None:
            self.reads_from.pause_reading()

    def pump(self) -> None:
        """Write what is due. Bytes that are not due yet are written later, in order."""
        loop = asyncio.get_running_loop()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._held(self.connection.link.rule) or self.writes_to is None:
            return
        while self._queue:
            due_s, data = self._queue[0]
            if due_s > loop.time():
                self._timer = loop.call_at(due_s, self.pump)
                break
            self._queue.popleft()
            if data is None:
                self.connection.end(close)
                return
            self._queued_bytes -= len(data)
            self.writes_to.write(data)
        if self._queued_bytes <= HIGH_BYTES:
            self.go_on()

    def go_on(self) -> None:
        if self.reads_from is not None and not self.reads_from.is_closing():
            self.reads_from.resume_reading()

    def end(self) -> None:
        self._queue.clear()
        if self._timer is not None:
            self._timer.cancel()


class Connection:
    def __init__(self, link: Link) -> None:
        self.link = link
        self.there = Direction(self, lambda rule: rule.there)
        self.back = Direction(self, lambda rule: rule.back)
        link.connections[self] = None

    def end(self, how: Callable[[asyncio.Transport], None]) -> None:
        self.link.connections.pop(self, None)
        for direction in (self.there, self.back):
            direction.end()
            if direction.reads_from is not None:
                how(direction.reads_from)


class End(asyncio.Protocol):
    """One end of a connection. It reads into one direction, and the other one writes to it."""

    def __init__(self, reads_into: Direction) -> None:
        self.reads_into = reads_into
        connection = reads_into.connection
        is_there = reads_into is connection.there
        self.written_by = connection.back if is_there else connection.there

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.reads_into.reads_from = self.written_by.writes_to = transport
        if self.reads_into.connection not in self.reads_into.connection.link.connections:
            reset(transport)
            return
        self.written_by.pump()

    def data_received(self, data: bytes) -> None:
        self.reads_into.take(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """The other end learns of it behind the bytes that are held."""
        if self.reads_into.connection in self.reads_into.connection.link.connections:
            self.reads_into.take(None)

    def pause_writing(self) -> None:
        if self.written_by.reads_from is not None:
            self.written_by.reads_from.pause_reading()

    def resume_writing(self) -> None:
        self.written_by.go_on()


class Incoming(End):
    """The end of the source."""

    def __init__(self, link: Link) -> None:
        super().__init__(Connection(link).there)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        connection = self.reads_into.connection
        if connection.link.rule.cut:
            connection.link.effects += 1
            connection.link.connections.pop(connection)
            assert isinstance(transport, asyncio.Transport)
            reset(transport)
            return
        super().connection_made(transport)
        self._dialing = asyncio.ensure_future(connection.link.dial(connection))


class Proxies:
    def __init__(self) -> None:
        self._links: dict[tuple[int, int], Link] = {}

    async def answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        if "pairs" in asked:
            return {"ports": [await self._listen(*pair) for pair in asked["pairs"]]}
        if "targets" in asked:
            for source, target, port in asked["targets"]:
                self._links[source, target].port = port
            return {}
        effects = sum(
            self._links[source, target].apply(Rule(**rule))
            for source, target, rule in asked["links"]
        )
        return {"effects": effects}

    async def _listen(self, source: int, target: int) -> int:
        link = self._links[source, target] = Link()
        loop = asyncio.get_running_loop()
        server = await loop.create_server(link.accept, HOST, 0)
        port: int = server.sockets[0].getsockname()[1]
        return port


async def serve() -> None:
    """Answer the lines of stdin until it ends."""
    proxies = Proxies()
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        sys.stdout.write(json.dumps(await proxies.answer(json.loads(line))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(serve())
