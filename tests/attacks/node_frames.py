"""Links to a node's port as an attacker makes them: WebSocket frames of msgpack, without bounds."""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import struct
from typing import Any

import msgpack  # type: ignore[import-untyped]

from quorate.quorum.ids import Uuid
from quorate.quorum.rpc.hello import Hello, HelloReply
from quorate.quorum.rpc.messages import BY_CLASS, VERSIONS, sole_message
from quorate.quorum.seams import Address
from tests.attacks.raw import ANSWER_TIMEOUT_S, CONNECT_TIMEOUT_S, Raw

BINARY = 0x82
MASKED = 0x80
ATTACKER_ID = 99
DIRECTORY_ID = Uuid(b"attacker-dir-id\x01")
INCARNATION_ID = Uuid(b"attacker-incarn\x01")
KEY = base64.b64encode(bytes(16)).decode()


def plain(value: Any) -> Any:
    """Return a message's value as msgpack carries it: dataclasses and tuples are arrays."""
    if dataclasses.is_dataclass(value):
        return [plain(getattr(value, each.name)) for each in dataclasses.fields(value)]
    if isinstance(value, tuple | list):
        return [plain(each) for each in value]
    if isinstance(value, memoryview | bytearray):
        return bytes(value)
    return value


def row(message: Any, correlation_id: int = 1, kind: int | None = None) -> list[Any]:
    number = BY_CLASS[type(message)].number if kind is None else kind
    return [number, correlation_id, *plain(message)]


def node_frame(*rows: list[Any]) -> bytes:
    packed: bytes = msgpack.packb(list(rows), use_bin_type=True)
    return packed


def web_socket(payload: bytes, first: int = BINARY) -> bytes:
    """Return a masked frame; the mask is zero, so that the payload stays as it is."""
    size = len(payload)
    if size <= 125:
        head = bytes((first, MASKED | size))
    elif size < 1 << 16:
        head = struct.pack(">BBH", first, MASKED | 126, size)
    else:
        head = struct.pack(">BBQ", first, MASKED | 127, size)
    return head + bytes(4) + payload


def upgrade(address: Address, *more: str, path: str = "/rpc", host: str | None = None) -> bytes:
    lines = [
        f"GET {path} HTTP/1.1",
        f"Host: {address if host is None else host}",
        "Upgrade: websocket",
        "Connection: Upgrade",
        f"Sec-WebSocket-Key: {KEY}",
        "Sec-WebSocket-Version: 13",
        *more,
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def hello(cluster_id: str, node_id: int = ATTACKER_ID, **fields: Any) -> Hello:
    values: dict[str, Any] = {
        "versions": VERSIONS,
        "cluster_id": cluster_id,
        "node_id": node_id,
        "directory_id": DIRECTORY_ID,
        "roles": ("broker",),
        "incarnation_id": INCARNATION_ID,
        **fields,
    }
    return Hello(**values)


class NodeLink(Raw):
    """A link that speaks WebSocket. Its frames are payloads."""

    @classmethod
    async def open(cls, address: Address, *, tls: bool = True, login: bool = True) -> NodeLink:
        """Connect and make the WebSocket handshake, or raise OSError. Nodes have no login."""
        link = await cls.upgraded(address)
        if link is None:
            raise ConnectionRefusedError(f"{address} refuses the WebSocket")
        return link

    @classmethod
    async def upgraded(
        cls, address: Address, *more: str, host: str | None = None
    ) -> NodeLink | None:
        """Return the link, or None if the node does not switch protocols."""
        made = await Raw.connected(address, cls.security_of(address))
        link = cls(made.reader, made.writer)
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                link.writer.write(upgrade(address, *more, host=host))
                head = await link.reader.readuntil(b"\r\n\r\n")
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            head = b""
        if not head.startswith(b"HTTP/1.1 101"):
            link.close()
            return None
        return link

    async def send_raw(self, data: bytes) -> bool:
        return await self.send(data)

    async def frame(self, timeout_s: float = ANSWER_TIMEOUT_S) -> bytes | None:
        try:
            async with asyncio.timeout(timeout_s):
                first, second = await self.reader.readexactly(2)
                size = second & 0x7F
                if size == 126:
                    size = int.from_bytes(await self.reader.readexactly(2), "big")
                elif size == 127:
                    size = int.from_bytes(await self.reader.readexactly(8), "big")
                payload = await self.reader.readexactly(size)
                return payload if first == BINARY else None
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            return None

    async def greet(self, cluster_id: str, **fields: Any) -> Hello | None:
        """Send a Hello; return the node's own, or None if it refuses us."""
        await self.send(web_socket(node_frame(row(hello(cluster_id, **fields), 0))))
        answer = await self.frame()
        if answer is None:
            return None
        reply: HelloReply = sole_message(answer, HelloReply)
        return None if reply.refusal else reply.hello

    async def call(self, *rows: list[Any], timeout_s: float = 2.0) -> bytes | None:
        """Send rows in one frame; return the frame that comes back, or None."""
        await self.send(web_socket(node_frame(*rows)))
        return await self.frame(timeout_s)
