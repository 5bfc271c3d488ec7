"""The Transport of real networks: TCP, with all protocols (`Wire`) behind one listening port.

The first four bytes of a connection tell the protocols apart. `GET ` begins HTTP: a WebSocket of a
node or a plain GET (`http.py`). Anything else is the size of a Kafka frame; the letters `GET `
would be a size of 1.2 GB. A port that serves Kafka's protocol only does not look for `GET `. The
transport runs on asyncio and on uvloop.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, cast

from quorate.quorum.clock import AsyncioClock
from quorate.quorum.log_limit import LogLimit
from quorate.quorum.open_files import open_files
from quorate.quorum.rpc.delivery import log_closing
from quorate.quorum.rpc.dial_failures import NO_CONNECTION, unreachable
from quorate.quorum.rpc.frame_link import FrameLink, address_of
from quorate.quorum.rpc.http import HEAD_TIMEOUT_S, HttpLink, WebSocketHandshake
from quorate.quorum.rpc.kafka_frames import KafkaLink
from quorate.quorum.rpc.ports import drop, is_self_connected
from quorate.quorum.rpc.socket_options import SocketOptions
from quorate.quorum.seams import (
    Accept,
    Address,
    DialTls,
    Link,
    Listener,
    PeerRefused,
    Tls,
    Wire,
)

if TYPE_CHECKING:
    from quorate.quorum.rpc.websocket import WebSocketSide

logger = logging.getLogger(__name__)
HTTP_PREFIX = b"GET "
HANDSHAKE_RECORD = 0x16
"""The first byte of a TLS handshake."""
LISTEN_TIMEOUT_S = 5.0
LISTEN_RETRY_S = 0.1
MAX_UNIDENTIFIED = 1024
"""Connections of one listener whose protocol is not known yet, or is plain HTTP, or whose WebSocket
handshake is not complete. Beyond this number the oldest of them is closed."""
UNIDENTIFIED_FILES = 32
"""The files that the process may open (RLIMIT_NOFILE), divided by this number, are a second bound
of these connections. The lower bound counts."""


class AioTransport:
    """Listens and connects on the running event loop. Implements `Transport` of
    `quorum/seams.py`."""

    def __init__(
        self, host_names: Iterable[str] = (), sockets: SocketOptions | None = None
    ) -> None:
        """Create a transport whose listeners have the options `sockets`, by default those of
        `SocketOptions()`. They answer plain HTTP requests whose Host is one of `host_names`, the
        listener's own host, localhost, or any IP address.

        The names apply to plain HTTP only. Nodes and Kafka clients may use any name."""
        self._host_names = frozenset(host_names)
        self._sockets = sockets or SocketOptions()

    async def listen(
        self,
        address: Address,
        accept: Mapping[Wire, Accept],
        *,
        max_frame_bytes: int,
        tls: Tls | None = None,
    ) -> Listener:
        """Listen on `address` and return the listener. Port 0 lets the kernel choose a free port,
        on the first IP address of the host only. With `tls`, connections begin with a handshake.

        `accept` maps each protocol of the port to the maker of its handlers. Raise OSError if the
        address cannot be used, or if the port stays taken for LISTEN_TIMEOUT_S."""
        loop = asyncio.get_running_loop()
        hosts = (*self._host_names, address.host)
        names = frozenset(each.lower().rstrip(".") for each in hosts if each)
        listener = AioListener(accept, max_frame_bytes, names)
        host = address.host or None
        if address.port == 0:  # one port, though a name may have several addresses
            found = await loop.getaddrinfo(
                host, 0, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )
            host = str(found[0][4][0])

        def protocol() -> asyncio.Protocol:
            if tls is None or tls.optional:
                return _Sniffer(listener, tls)
            return cast(asyncio.Protocol, tls.above(_Sniffer(listener)))

        server = await _server(protocol, host, address.port, self._sockets)
        listener.serve(server, address.host)
        return listener

    async def connect(
        self,
        address: Address,
        wire: Wire,
        accept: Accept,
        *,
        max_frame_bytes: int,
        timeout_ms: int,
        tls: DialTls | None = None,
    ) -> Link:
        """Connect to `address` within `timeout_ms`. Return the link, whose handler `accept` has
        made. With `tls`, the link knows the identity that the peer has proved.

        Raise PeerRefused if no process listens there, TlsFailed if the TLS handshake fails, and
        PeerUnreachable for any other failure.
        `wire` is NODE, with the WebSocket handshake done on return, or KAFKA."""
        assert wire is not Wire.HTTP, "nodes do not ask by plain HTTP"
        if wire is Wire.NODE:
            from quorate.quorum.rpc import websocket

            return await websocket.connect(
                address, accept, max_frame_bytes=max_frame_bytes, timeout_ms=timeout_ms, tls=tls
            )
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                _, link = await loop.create_connection(
                    lambda: _OutgoingKafkaLink(accept, max_frame_bytes, tls),
                    address.host,
                    address.port,
                    ssl=None if tls is None else tls.dial_context,
                )
        except ConnectionRefusedError as error:
            raise PeerRefused(f"{address} refuses connections") from error
        except NO_CONNECTION as error:
            raise unreachable(address, error) from error
        if link.self_connected:
            raise PeerRefused(f"no process listens on {address}: the connection was to itself")
        return link


class PortTaken(OSError):
    """Another process listens on the address. The text says what to do."""

    for_operator = True

    def __init__(self, host: str, port: int) -> None:
        super().__init__(errno.EADDRINUSE, "Address already in use")
        self._place = f"{host}:{port}"

    def __str__(self) -> str:
        return (
            f"cannot listen on {self._place}, because another process listens there. Stop that "
            "process, or give this listener another port"
        )


async def _server(
    protocol: Callable[[], asyncio.Protocol], host: str | None, port: int, options: SocketOptions
) -> asyncio.Server:
    """Listen. If the port is taken, retry for LISTEN_TIMEOUT_S.

    The socket of a process that ended, or a self-connection, may hold the port for a moment."""
    loop = asyncio.get_running_loop()
    end_s = loop.time() + LISTEN_TIMEOUT_S
    waited = False
    while True:
        try:
            server = await loop.create_server(
                protocol, host, port, backlog=options.backlog, start_serving=False
            )
            try:
                options.apply(server)
                await server.start_serving()
            except BaseException:
                server.close()
                raise
            return server
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            if loop.time() >= end_s:
                raise PortTaken(host or "*", port) from error
        if not waited:
            waited = True
            timeout_s = LISTEN_TIMEOUT_S
            logger.warning("%s:%d is taken; retrying for %.0f s", host or "*", port, timeout_s)
        await asyncio.sleep(LISTEN_RETRY_S)


class _OutgoingKafkaLink(KafkaLink):
    """Drops a self-connection before its handler is made."""

    self_connected = False

    def __init__(self, accept: Accept, max_frame_bytes: int, tls: DialTls | None) -> None:
        super().__init__(accept, max_frame_bytes)
        self._tls = tls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if self._tls is not None:
            self.identity = self._tls.dialed_identity(transport)
        if is_self_connected(transport):
            self.self_connected = self.closed = True
            drop(cast(asyncio.Transport, transport))
        else:
            super().connection_made(transport)

    def connection_lost(self, error: Exception | None) -> None:
        if not self.self_connected:
            super().connection_lost(error)


class AioListener:
    """One listening port and all connections that it accepted. The event loop owns it. `address`
    has the host as the caller of `listen` gave it, and the actual port.

    The handlers of the port bound the numbers of identified connections (`node_links.py`,
    `connection_quotas.py`). Invariant: `_unidentified` is a subset of `_open`."""

    address: Address

    def __init__(
        self, accept: Mapping[Wire, Accept], max_frame_bytes: int, host_names: Collection[str]
    ) -> None:
        """Create a listener that is not bound yet. `host_names` are in lower case."""
        self.accept = accept
        self.host_names = host_names
        self.http = accept.get(Wire.HTTP)
        self.max_frame_bytes = max_frame_bytes
        self._server: asyncio.Server
        self._open: dict[Link | _Sniffer | WebSocketHandshake, None] = {}
        self._unidentified: dict[
            Link | _Sniffer | WebSocketHandshake, None
        ] = {}  # the oldest first
        self._max_unidentified = max(1, min(MAX_UNIDENTIFIED, open_files() // UNIDENTIFIED_FILES))
        self.lines = LogLimit(AsyncioClock())
        self._websockets: WebSocketSide | None = None
        self._closing = False
        self._drained = asyncio.Event()

    def serve(self, server: asyncio.Server, host: str) -> None:
        """Take over `server`, which is bound to a port of `host`."""
        self._server = server
        self.address = Address(host, server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        """Stop listening, abort all connections, and wait until they have ended."""
        self._closing = True
        self._server.close()
        for connection in list(self._open):
            connection.abort()
        if self._open:
            self._drained.clear()
            await self._drained.wait()
        if self._websockets is not None:
            await self._websockets.close()

    def opened(self, connection: Link | _Sniffer | WebSocketHandshake) -> None:
        """Record an open connection. If too many are unidentified, close the oldest of these."""
        self._open[connection] = None
        if isinstance(connection, FrameLink):
            connection.lines = self.lines
        if isinstance(connection, _Sniffer | HttpLink | WebSocketHandshake):
            self._unidentified[connection] = None
            if len(self._unidentified) > self._max_unidentified:
                self._close_oldest_unidentified()

    def gone(self, connection: Link | _Sniffer | WebSocketHandshake) -> None:
        """Remove a connection that is closed, or that another protocol has taken over."""
        del self._open[connection]
        self._unidentified.pop(connection, None)
        if not self._open:
            self._drained.set()

    def _close_oldest_unidentified(self) -> None:
        """Close the oldest connection that is not identified, or is plain HTTP, even if its
        response is not sent yet. A new connection is always accepted."""
        oldest = next(iter(self._unidentified))
        del self._unidentified[oldest]
        if (left_out := self.lines.passes("unidentified")) is not None:
            logger.warning(
                "closing the oldest of more than %d connections to %s that have not sent "
                "a request%s",
                self._max_unidentified,
                self.address,
                left_out,
            )
        oldest.abort()

    @property
    def closing(self) -> bool:
        """Return True after `close` was called."""
        return self._closing

    @property
    def speaks_kafka_only(self) -> bool:
        """Return True if Kafka's protocol is the only one on this port."""
        return self.accept.keys() == {Wire.KAFKA}

    def protocol_for(self, prefix: bytes) -> asyncio.Protocol | None:
        """Return a new protocol object for a connection that starts with `prefix`.

        Any prefix but `GET ` is taken for Kafka's protocol. Its link counts as open from now on.
        Return None if this port does not serve Kafka's protocol."""
        return HttpLink(self) if prefix == HTTP_PREFIX else self._kafka_link()

    def _kafka_link(self) -> KafkaLink | None:
        accept = self.accept.get(Wire.KAFKA)
        if accept is None:
            return None
        link = KafkaLink(accept, self.max_frame_bytes, self.gone)
        self.opened(link)
        return link

    def websocket_protocol(self) -> asyncio.Protocol | None:
        """Return the protocol of a new WebSocket. Return None if this port serves no nodes."""
        accept = self.accept.get(Wire.NODE)
        if accept is None:
            return None
        if self._websockets is None:
            from quorate.quorum.rpc.websocket import WebSocketSide

            self._websockets = WebSocketSide(accept, self.max_frame_bytes, self.opened, self.gone)
        return self._websockets.protocol()


class _Sniffer(asyncio.Protocol):
    """Reads the first bytes of a connection, and passes it to the protocol that they select."""

    def __init__(self, listener: AioListener, optional_tls: Tls | None = None) -> None:
        self._listener = listener
        self._optional_tls = optional_tls
        self._transport: asyncio.Transport
        self._timer: asyncio.TimerHandle | None = None
        self._input = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's transports are no subclass
        self._listener.opened(self)
        if self._listener.closing:
            self._transport.abort()
        elif self._listener.speaks_kafka_only:
            self._leave_to(self._listener.protocol_for(b""))
        else:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(
                HEAD_TIMEOUT_S, self._close, "it has sent too little to tell its protocol"
            )

    def connection_lost(self, error: Exception | None) -> None:
        self._still()
        self._listener.gone(self)

    def abort(self) -> None:
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._input += data
        if self._optional_tls is not None and self._input[0] == HANDSHAKE_RECORD:
            self._leave_to(self._optional_tls.above(_Sniffer(self._listener)))
        elif len(self._input) >= len(HTTP_PREFIX):
            self._leave_to(self._listener.protocol_for(self._input[: len(HTTP_PREFIX)]))

    def _leave_to(self, protocol: asyncio.Protocol | None) -> None:
        if protocol is None:
            return self._close("its first bytes belong to no protocol of this port")
        self._still()
        self._listener.gone(self)
        self._transport.set_protocol(protocol)
        protocol.connection_made(self._transport)
        if self._input:
            protocol.data_received(self._input)
        return None

    def _still(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _close(self, reason: str) -> None:
        log_closing(address_of(self._transport), reason, self._listener.lines)
        self._transport.abort()
