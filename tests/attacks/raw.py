"""Kafka requests as an attacker writes them, and the connections that carry them.

The writer walks the declared schema but applies no bound, so it also writes what Quorate's own
encoder refuses. A classic string of more than 65,535 bytes gets the low 16 bits of its length.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Sequence
from typing import Any, ClassVar

from quorate.cli.client.client_properties import ClientSecurity
from quorate.cli.client.errors import Refused
from quorate.cli.client.sasl_login import Login, login_steps
from quorate.quorum.protocol import headers
from quorate.quorum.protocol.apis import APIS
from quorate.quorum.protocol.codec import decode
from quorate.quorum.protocol.layout import FIXED, Field, layout
from quorate.quorum.protocol.schemas.sasl_authenticate import SaslAuthenticateRequest
from quorate.quorum.protocol.schemas.sasl_handshake import SaslHandshakeRequest
from quorate.quorum.protocol.wire import Message
from quorate.quorum.seams import Address

CONNECT_TIMEOUT_S = 10.0
ANSWER_TIMEOUT_S = 30.0
STREAM_LIMIT_BYTES = 1 << 16
CLIENT_ID = "attacker"
SASL_VERSIONS: dict[type[Message], int] = {SaslHandshakeRequest: 1, SaslAuthenticateRequest: 2}


def uvarint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def sized(data: bytes | None, *, wide: bool, flexible: bool) -> bytes:
    """`data` behind its length; `wide` says that a classic length has four bytes, not two."""
    if data is None:
        return b"\x00" if flexible else b"\xff" * (4 if wide else 2)
    if flexible:
        return uvarint(len(data) + 1) + data
    length = len(data) & (0xFFFFFFFF if wide else 0xFFFF)
    return length.to_bytes(4 if wide else 2, "big") + data


def element(field: Field, value: Any, version: int, flexible: bool) -> bytes:
    if field.struct is not None:
        return struct_of(value, version, flexible)
    if field.kind in FIXED:
        return struct.pack(f">{FIXED[field.kind]}", value)
    data = value.encode() if isinstance(value, str) else value
    data = bytes(data) if data is not None else None
    return sized(data, wide=field.kind != "string", flexible=flexible)


def array(elements: Sequence[bytes] | None, *, flexible: bool) -> bytes:
    if elements is None:
        return b"\x00" if flexible else b"\xff\xff\xff\xff"
    count = len(elements)
    head = uvarint(count + 1) if flexible else struct.pack(">i", count)
    return head + b"".join(elements)


def written(field: Field, value: Any, version: int, flexible: bool) -> bytes:
    if field.array:
        parts = None if value is None else [element(field, x, version, flexible) for x in value]
        return array(parts, flexible=flexible)
    if field.struct is not None and field.nullable:
        return b"\xff" if value is None else b"\x01" + struct_of(value, version, flexible)
    return element(field, value, version, flexible)


def struct_of(value: Any, version: int, flexible: bool) -> bytes:
    plan = layout(type(value), version, flexible)
    out = [written(each, getattr(value, each.name), version, flexible) for each in plan.plain]
    if flexible:
        tagged = []
        for each in plan.tagged:
            found = getattr(value, each.name)
            if found != each.default:
                body = written(each, found, version, flexible)
                tagged.append(uvarint(each.tag or 0) + uvarint(len(body)) + body)
        out += [uvarint(len(tagged)), *tagged]
    return b"".join(out)


def body_of(message: Message, version: int) -> bytes:
    return struct_of(message, version, version >= APIS[message.API_KEY].flexible_since)


def head_of(
    api_key: int, version: int, client_id: str | None = CLIENT_ID, correlation_id: int = 7
) -> bytes:
    name = None if client_id is None else client_id.encode()
    head = struct.pack(">hhi", api_key, version, correlation_id)
    head += sized(name, wide=False, flexible=False)
    api = APIS.get(api_key)
    flexible = api is not None and api.request_header_version(version) >= 2
    return head + b"\x00" if flexible else head


def request(message: Message, version: int, client_id: str | None = CLIENT_ID) -> bytes:
    """Return a request without the frame's size."""
    return head_of(message.API_KEY, version, client_id) + body_of(message, version)


def framed(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


class Raw:
    """One connection. No method raises because of what the node does: a closed connection or a
    missing answer is a result."""

    security: ClassVar[dict[Address | None, ClientSecurity]] = {}
    """The TLS and the login of each node, and under None of all nodes that are not named. Empty in
    a cluster without both. The process of an attacker sets it once."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    def security_of(cls, address: Address) -> ClientSecurity:
        everywhere = cls.security.get(None, ClientSecurity())
        return cls.security.get(address, everywhere)

    @classmethod
    async def open(cls, address: Address, *, tls: bool = True, login: bool = True) -> Raw:
        """Connect with the TLS and the login that the node demands, or raise OSError.

        Without `login` the connection ends before it, and without `tls` it is a plain socket."""
        security = cls.security_of(address)
        made = await cls.connected(address, security if tls else ClientSecurity())
        if tls and login and security.login is not None:
            try:
                await made.log_in(security.login, address)
            except (OSError, Refused) as error:
                made.close()
                raise ConnectionRefusedError(f"{address} refuses the login: {error}") from error
        return made

    @classmethod
    async def connected(cls, address: Address, security: ClientSecurity) -> Raw:
        """Connect, with a TLS handshake if `security` has one. Raise OSError."""
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            reader, writer = await asyncio.open_connection(
                address.host,
                address.port,
                limit=STREAM_LIMIT_BYTES,
                ssl=security.tls,
                server_hostname=None if security.tls is None else address.host,
            )
        return cls(reader, writer)

    async def log_in(self, login: Login, address: Address) -> None:
        """Authenticate. Raise Refused, or ConnectionResetError if there is no answer."""
        steps = login_steps(login, str(address))
        asked = next(steps)
        while True:
            answer = await self.ask(asked, SASL_VERSIONS[type(asked)])
            if answer is None:
                raise ConnectionResetError(f"{address} does not answer the login")
            try:
                asked = steps.send(answer)
            except StopIteration:
                return

    async def send(self, data: bytes, timeout_s: float = ANSWER_TIMEOUT_S) -> bool:
        """Return True if the kernel or our buffer took all bytes in time."""
        try:
            async with asyncio.timeout(timeout_s):
                self.writer.write(data)
                await self.writer.drain()
        except (OSError, TimeoutError):
            return False
        return True

    async def frame(self, timeout_s: float = ANSWER_TIMEOUT_S) -> bytes | None:
        """Return the next response, or None if the connection ended or the time is over."""
        try:
            async with asyncio.timeout(timeout_s):
                size = int.from_bytes(await self.reader.readexactly(4), "big")
                return await self.reader.readexactly(size)
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            return None

    async def ended(self, timeout_s: float) -> bool:
        """Read and discard everything. Return True if the node closes the connection in time."""
        try:
            async with asyncio.timeout(timeout_s):
                while await self.reader.read(STREAM_LIMIT_BYTES):
                    pass
        except TimeoutError:
            return False
        except OSError:
            return True
        return True

    async def ask(
        self, message: Message, version: int, client_id: str | None = CLIENT_ID
    ) -> Any | None:
        """Return the decoded response, or None if there was none."""
        await self.send(framed(request(message, version, client_id)))
        answer = await self.frame()
        if answer is None:
            return None
        api = APIS[message.API_KEY]
        body = headers.response_body(memoryview(answer), api.response_header_version(version))
        return decode(api.response, version, body)

    def close(self) -> None:
        self.writer.transport.abort()

    def hang_up(self) -> None:
        """Close the connection after everything that was sent has left."""
        self.writer.close()
