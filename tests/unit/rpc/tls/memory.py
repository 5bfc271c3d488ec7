"""A TLS connection without sockets: our protocol, a client of the ssl module, and the bytes between
them under the control of a test."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import Any

from quorate.quorum.rpc.tls.handshakes import Handshakes
from quorate.quorum.rpc.tls.identity import identity_of
from quorate.quorum.rpc.tls.tls_protocol import TlsProtocol
from quorate.quorum.seams import Address, PeerIdentity
from tests.certificates import authority


class FakeSocket(asyncio.Transport):
    """The socket's transport. It keeps what is written, and may pretend to be full."""

    def __init__(self, full_above_bytes: int = 1 << 40) -> None:
        super().__init__()
        self.written = bytearray()
        self.closed = self.aborted = False
        self.reading = True
        self.full = False
        self.protocol: asyncio.Protocol | None = None
        self.full_above_bytes = full_above_bytes

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("10.0.0.1", 5000) if name == "peername" else default

    def write(self, data: Any) -> None:
        assert not self.closed, "written after the close"
        self.written += data
        if not self.full and len(self.written) > self.full_above_bytes:
            self.full = True
            assert self.protocol is not None
            self.protocol.pause_writing()

    def take(self) -> bytes:
        """Return what is written, as the network does. The socket takes more again."""
        data, self.written = bytes(self.written), bytearray()
        if self.full:
            self.full = False
            assert self.protocol is not None
            self.protocol.resume_writing()
        return data

    def get_write_buffer_size(self) -> int:
        return len(self.written)

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def is_reading(self) -> bool:
        return self.reading

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = self.aborted = True


class Plain(asyncio.Protocol):
    """The protocol above TLS. It records its calls."""

    def __init__(self) -> None:
        self.received = bytearray()
        self.calls: list[str] = []
        self.transport: asyncio.Transport
        self.identity: PeerIdentity | None = None
        self.on_data: Callable[[], None] = lambda: None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.calls.append("made")

    def identified(self, identity: PeerIdentity) -> None:
        self.identity = identity
        self.calls.append("identified")

    def data_received(self, data: bytes) -> None:
        self.received += data
        if self.calls[-1] != "data":
            self.calls.append("data")
        self.on_data()

    def eof_received(self) -> None:
        self.calls.append("eof")

    def connection_lost(self, error: Exception | None) -> None:
        self.calls.append("lost")

    def pause_writing(self) -> None:
        self.calls.append("pause")

    def resume_writing(self) -> None:
        self.calls.append("resume")


class Side:
    """The TLS of a listener, with its counters."""

    def __init__(self, context: ssl.SSLContext, buffer_bytes: int = 1 << 18) -> None:
        self.handshakes = Handshakes()
        self.buffer = bytearray(buffer_bytes)
        self.context = context
        self.completed = 0
        self.failures: list[str] = []

    def new_session(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO) -> ssl.SSLObject:
        return self.context.wrap_bio(incoming, outgoing, server_side=True)

    def identity_of(self, session: ssl.SSLObject) -> PeerIdentity:
        from quorate.config.principal_mapping import parse_rules

        return identity_of(session, parse_rules("DEFAULT"))

    def succeeded(self) -> None:
        self.completed += 1

    def failed(self, peer: Address, reason: str, error: Exception | None) -> None:
        self.failures.append(reason)


class Client:
    """A client of the ssl module. `out` has the bytes that it wants to send."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.session = context.wrap_bio(self.incoming, self.outgoing, server_hostname="localhost")
        self.secured = False
        self.received = bytearray()
        self.ended = False

    def step(self, data: bytes = b"") -> bytes:
        """Take `data` from the server, and return the bytes for the server."""
        self.incoming.write(data)
        try:
            if not self.secured:
                self.session.do_handshake()
                self.secured = True
            while not self.ended:
                part = self.session.read(1 << 16)
                self.ended = not part
                self.received += part
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            self.ended = True
        return self.outgoing.read()

    def send(self, data: bytes) -> bytes:
        """Return the bytes for the server that carry `data`."""
        position = 0
        while position < len(data):
            position += self.session.write(data[position:])
        return self.outgoing.read()


class Connection:
    """One connection between a client and our protocol."""

    def __init__(self, side: Side, client: Client, full_above_bytes: int = 1 << 40) -> None:
        self.side, self.client = side, client
        self.socket = FakeSocket(full_above_bytes)
        self.plain = Plain()
        self.protocol = TlsProtocol(side, self.plain)
        self.socket.protocol = self.protocol
        self.protocol.connection_made(self.socket)

    async def deliver(self, data: bytes, pieces: list[int] | None = None) -> None:
        """Give `data` to the server in pieces of these sizes, and the rest in one piece, whenever
        it reads."""
        for size in [*(pieces or []), len(data)]:
            part, data = data[:size], data[size:]
            if part and not self.socket.closed:
                for _ in range(20):
                    if self.socket.reading:
                        break
                    await asyncio.sleep(0)
                self.protocol.data_received(part)
        for _ in range(4):
            await asyncio.sleep(0)

    async def exchange(self, data: bytes = b"", pieces: list[int] | None = None) -> None:
        """Deliver `data`, then pass bytes on in both directions until both ends are silent."""
        out = data + self.client.step()
        for _ in range(100):
            await self.deliver(out, pieces)
            answer = self.socket.take()
            out = self.client.step(answer)
            if not out and not answer:
                return

    async def handshake(self, pieces: list[int] | None = None) -> None:
        await self.exchange(pieces=pieces)
        assert self.client.secured


def client_context(**options: Any) -> ssl.SSLContext:
    """Return a client that trusts the authority of the tests."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=authority().certificate_pem.decode())
    for name, value in options.items():
        setattr(context, name, value)
    return context
