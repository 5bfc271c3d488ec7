"""Plain HTTP on a listening port: one GET per connection, with a bounded head.

A connection that began with `GET ` is one of two things. If it asks for RPC_PATH, and the port
serves nodes, `websocket.py` takes it over. aiohttp then sees a head that this module has written,
and never one of a client. Otherwise the connection is a link of `Wire.HTTP`: the target of the
request is its one incoming frame, and the response is its one outgoing frame. A request that breaks
a rule of `http_head.py` gets an error response. No client can hold more than MAX_HEAD_BYTES and one
read of the socket, or a connection for longer than the timeouts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass
from http import HTTPStatus
from typing import Protocol, cast

from quorate.quorum.rpc.delivery import deliver, deliver_end
from quorate.quorum.rpc.frame_link import IDENTITY, address_of
from quorate.quorum.rpc.http_head import (
    MAX_HEAD_BYTES,
    Head,
    HeadRefused,
    check_host,
    parse_head,
)
from quorate.quorum.seams import Accept, Buffer, LinkHandler, PeerIdentity, joined

RPC_PATH = b"/rpc"
HEAD_TIMEOUT_S = 30.0
ANSWER_TIMEOUT_S = 60.0  # from the end of the head until the client has the whole response
END_OF_HEAD = b"\r\n\r\n"


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """A complete response."""

    body: bytes
    content_type: str = "text/plain; charset=utf-8"
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()

    def encoded(self) -> bytes:
        """Return the bytes of the response. The connection closes after them."""
        lines = [
            f"HTTP/1.1 {self.status} {HTTPStatus(self.status).phrase}",
            f"Content-Type: {self.content_type}",
            f"Content-Length: {len(self.body)}",
            *(f"{name}: {value}" for name, value in self.headers),
            "Connection: close",
        ]
        return "\r\n".join(lines).encode("ascii") + END_OF_HEAD + self.body


def refusal(status: int, reason: str) -> HttpResponse:
    """Return an error response with `reason` as its text."""
    return HttpResponse(f"{reason}\n".encode(), status=status)


def websocket_head(key: bytes) -> bytes:
    """Return the head of a WebSocket handshake for aiohttp. Of the client's head, only the key
    counts."""
    return (
        b"GET %b HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %b\r\n\r\n" % (RPC_PATH, key)
    )


class HttpListener(Protocol):
    """The listener of a connection, as the connection uses it."""

    http: Accept | None
    host_names: Collection[str]
    """The names of this node in lower case. A request names one of them, or an IP address."""

    def websocket_protocol(self) -> asyncio.Protocol | None:
        """Return the protocol for a new WebSocket, or None if this port serves none."""

    def opened(self, connection: HttpLink) -> None:
        """Record an open connection."""

    def gone(self, connection: HttpLink) -> None:
        """Remove a connection that is closed, or that another protocol has taken over."""


class WebSocketHandshake:
    """A connection that `websocket.py` has taken over, until its WebSocket handshake is complete or
    refused."""

    def __init__(self, transport: asyncio.BaseTransport) -> None:
        """Create the handshake of the connection `transport`."""
        self._transport = cast(asyncio.Transport, transport)

    def abort(self) -> None:
        """Close the connection immediately."""
        self._transport.abort()


class HttpLink(asyncio.Protocol):
    """Reads the head of a request. Then it is a link with one frame, or it passes the connection to
    the WebSocket protocol.

    The frame is the target with its query, as the client encoded it. The handler sends one encoded
    HttpResponse and then closes the link."""

    def __init__(self, listener: HttpListener) -> None:
        """Create the protocol of one connection of `listener`."""
        self.closed = False
        self.bearer: str | None = None
        """The token of the Authorization header, known before the handler is made."""
        self._listener = listener
        self._transport: asyncio.Transport
        self._timer: asyncio.TimerHandle
        self._head = b""
        self._read = False
        self._handler: LinkHandler | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the timeout for the head. asyncio calls this method."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's transports are no subclass
        self.peer = address_of(self._transport)
        self.identity: PeerIdentity | None = transport.get_extra_info(IDENTITY)
        self._listener.opened(self)
        self._arm(HEAD_TIMEOUT_S, self.abort)

    def connection_lost(self, error: Exception | None) -> None:
        """Report the end to the listener and the handler. asyncio calls this method."""
        self._timer.cancel()
        self.closed = True
        self._listener.gone(self)
        handler, self._handler = self._handler, None  # breaks a cycle, as in `FrameLink`
        if handler is not None:
            deliver_end(self, handler, error)

    def eof_received(self) -> bool:
        """Return True if the response may still be sent after the client closed its half. asyncio
        calls this method."""
        return self._read

    def data_received(self, data: bytes) -> None:
        """Gather the head, and handle it when it is complete. asyncio calls this method."""
        if self._read:
            return  # one request per connection
        self._head += data
        end = self._head.find(END_OF_HEAD)
        if end > MAX_HEAD_BYTES or (end < 0 and len(self._head) > MAX_HEAD_BYTES):
            self._refuse(431, f"the head of a request may have at most {MAX_HEAD_BYTES} bytes")
        elif end >= 0:
            try:
                self._take(parse_head(self._head[:end]))
            except HeadRefused as refused:
                self._refuse(refused.status, str(refused))

    def _take(self, head: Head) -> None:
        target = head.target
        if target.partition(b"?")[0] == RPC_PATH:
            protocol = self._listener.websocket_protocol()
            if protocol is not None and head.websocket_key is None:
                return self._refuse(400, "this path is for the WebSockets of nodes")
            if protocol is not None:
                return self._leave_to(protocol, websocket_head(head.websocket_key or b""))
        accept = self._listener.http
        if accept is None:
            return self._refuse(404, "this port serves no plain HTTP")
        check_host(head.host, self._listener.host_names)
        self._read = True
        self._head = b""
        self.bearer = head.bearer
        self._arm(ANSWER_TIMEOUT_S, self.abort)
        self._handler = accept(self)
        deliver(self, self._handler, memoryview(target))
        return None

    def _leave_to(self, protocol: asyncio.Protocol, head: bytes) -> None:
        self._timer.cancel()
        self._listener.gone(self)
        self._transport.set_protocol(protocol)
        protocol.connection_made(self._transport)
        protocol.data_received(head)

    def _refuse(self, status: int, reason: str) -> None:
        self._read = True
        self.send(refusal(status, reason).encoded())
        self.close()

    def _arm(self, delay_s: float, action: Callable[[], None]) -> None:
        if hasattr(self, "_timer"):
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(delay_s, action)

    # Link

    def send(self, *parts: Buffer) -> None:
        """Write the response, unless the connection is closed. The connection stays open."""
        if not self.closed:
            self._transport.write(joined(parts))

    @property
    def pending_bytes(self) -> int:
        """Return the bytes that the socket has not accepted yet."""
        return self._transport.get_write_buffer_size()

    def pause_reading(self) -> None:
        """Do nothing: no second frame is read anyway."""

    def resume_reading(self) -> None:
        """Do nothing, like `pause_reading`."""

    def close(self) -> None:
        """Write what is queued, then close."""
        self.closed = True
        self._transport.close()

    def abort(self) -> None:
        """Close immediately."""
        self.closed = True
        self._transport.abort()
