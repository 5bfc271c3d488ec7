"""The WebSocket handshake of links between nodes: aiohttp, on RPC_PATH of a listening port.

After the handshake, `websocket_frames.py` reads and writes the frames. `transport.py` imports this
module only when the first link between nodes begins, because the import of aiohttp is slow.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
from aiohttp import web

from quorate.quorum.node_message_bounds import MAX_NODE_FRAME_BYTES
from quorate.quorum.rpc.dial_failures import NO_CONNECTION, unreachable
from quorate.quorum.rpc.http import RPC_PATH, WebSocketHandshake
from quorate.quorum.rpc.websocket_frames import WebSocketLink
from quorate.quorum.seams import Accept, Address, DialTls, Link, PeerRefused

CLOSE_TIMEOUT_S = 0.1
"""Maximum wait for connections that are still in the handshake when their listener closes."""


class WebSocketSide:
    """The server side: the connections of one listener that ask for RPC_PATH.

    Each of them begins with a head of `http.py`, so that the handshake cannot fail because of what
    a client sent. The event loop owns this object."""

    def __init__(
        self,
        accept: Accept,
        max_frame_bytes: int,
        on_open: Callable[[Link | WebSocketHandshake], None],
        on_gone: Callable[[Link | WebSocketHandshake], None],
    ) -> None:
        """Create the server side. `accept` makes the handler of each link. A frame above
        `max_frame_bytes` closes its link, and so does one above MAX_NODE_FRAME_BYTES. The first
        frame has a smaller bound (`websocket_frames.py`).

        `on_open` is called with each handshake that begins, and with each link whose handshake is
        complete, before `accept`. `on_gone` is called when either ends, for any reason."""
        self._accept = accept
        self._max_frame_bytes = min(max_frame_bytes, MAX_NODE_FRAME_BYTES)
        self._on_open = on_open
        self._on_gone = on_gone
        self._server = _Server(self._serve, on_open, on_gone)

    def protocol(self) -> asyncio.Protocol:
        """Return the protocol of one new connection."""
        return self._server()

    async def close(self) -> None:
        """Close the connections whose handshake is not complete, after CLOSE_TIMEOUT_S at most. The
        listener has aborted all links before it calls this."""
        await self._server.shutdown(CLOSE_TIMEOUT_S)

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        socket = web.WebSocketResponse(autoclose=False, compress=False)
        try:
            await socket.prepare(request)
        except ConnectionResetError:  # the client closed the connection during the handshake
            return web.Response()
        if request.transport is None:
            return socket
        link = WebSocketLink(
            self._accept, self._max_frame_bytes, masks=False, on_gone=self._on_gone
        )
        self._on_open(link)
        self._server.complete(request.protocol)
        link.take_over(request.transport)
        try:
            await link.gone
        finally:
            link.abort()
        # aiohttp sends a close frame after a WebSocketResponse, and that response keeps the
        # exception of the lost connection: a reference cycle with all objects of the link.
        return web.Response()


class _Server(web.Server):
    """Reports the connections whose handshake is not complete."""

    def __init__(
        self,
        serve: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]],
        on_open: Callable[[WebSocketHandshake], None],
        on_gone: Callable[[WebSocketHandshake], None],
    ) -> None:
        super().__init__(serve, access_log=None)
        self._on_open = on_open
        self._on_gone = on_gone
        self._handshakes: dict[object, WebSocketHandshake] = {}

    def connection_made(self, handler: Any, transport: asyncio.Transport) -> None:
        super().connection_made(handler, transport)
        handshake = self._handshakes[handler] = WebSocketHandshake(transport)
        self._on_open(handshake)

    def connection_lost(self, handler: Any, exc: BaseException | None = None) -> None:
        super().connection_lost(handler, exc)
        self.complete(handler)

    def complete(self, handler: object) -> None:
        """Report that a handshake has ended. A second call does nothing."""
        handshake = self._handshakes.pop(handler, None)
        if handshake is not None:
            self._on_gone(handshake)


class _ClientWebSocket(aiohttp.ClientWebSocketResponse):
    """Keeps the transport, which aiohttp offers to servers only, and the HTTP response.

    `_keep` must close the response. Otherwise its connection is not released if the peer closes
    first."""

    transport: asyncio.Transport

    def __init__(
        self, reader: Any, writer: Any, protocol: Any, response: Any, *args: Any, **options: Any
    ) -> None:
        super().__init__(reader, writer, protocol, response, *args, **options)
        self.transport = writer.transport
        self.response: aiohttp.ClientResponse = response


async def connect(
    address: Address,
    accept: Accept,
    *,
    max_frame_bytes: int,
    timeout_ms: int,
    tls: DialTls | None = None,
) -> Link:
    """Connect to the node port at `address` within `timeout_ms`, and return the link.

    The HTTP handshake is complete on return, after that of `tls`. `accept` has made the handler of
    the link, which knows the identity of the peer. A frame above `max_frame_bytes` closes the link.
    The first frame has a smaller bound (`websocket_frames.py`).

    Raise PeerRefused if no process listens there, and TlsFailed if the TLS handshake fails. Raise
    PeerUnreachable for another failure of the connection or of the HTTP handshake, or after the
    timeout."""
    session = aiohttp.ClientSession(
        timeout=aiohttp.ClientTimeout(total=None), ws_response_class=_ClientWebSocket
    )
    host = f"[{address.host}]" if ":" in address.host else address.host
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            socket = await session.ws_connect(
                f"{'http' if tls is None else 'https'}://{host}:{address.port}{RPC_PATH.decode()}",
                autoclose=False,
                compress=0,
                ssl=True if tls is None else tls.dial_context,
            )
    except BaseException as error:
        await session.close()
        if isinstance(error, aiohttp.ClientConnectorError) and isinstance(
            error.os_error, ConnectionRefusedError
        ):
            raise PeerRefused(f"{address} refuses connections") from error
        if isinstance(error, (aiohttp.ClientError, *NO_CONNECTION)):
            raise unreachable(address, error) from error
        raise
    assert isinstance(socket, _ClientWebSocket)
    link = WebSocketLink(accept, max_frame_bytes, masks=True)
    if tls is not None:
        link.identity = tls.dialed_identity(socket.transport)
    link.take_over(socket.transport)
    link.keeper = asyncio.get_running_loop().create_task(_keep(link, session, socket.response))
    return link


async def _keep(
    link: WebSocketLink, session: aiohttp.ClientSession, response: aiohttp.ClientResponse
) -> None:
    """Keep the objects of aiohttp until the link ends, because aiohttp closes the connection as
    soon as nothing refers to them."""
    try:
        await link.gone
    finally:
        link.abort()
        response.close()
        await session.close()
