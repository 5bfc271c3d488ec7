"""Links over aiohttp WebSockets.

One binary message is one frame. Frames are written without a task: aiohttp's coroutine for sending
an uncompressed frame waits only while the transport's buffer is above its limit, so without a limit
it can be run by hand, in one step. What is buffered is bounded by those who send, who are shown
`pending_bytes`. Reading is one task per link.

Imported when the first node link appears: aiohttp is large.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

import aiohttp
from aiohttp import WSMsgType, web

from quorate.quorum.rpc.delivery import deliver, deliver_end, raise_failure
from quorate.quorum.rpc.http import RPC_PATH
from quorate.quorum.rpc.kafka_frames import address_of
from quorate.quorum.seams import (
    Accept,
    Address,
    Buffer,
    Link,
    LinkHandler,
    PeerRefused,
    PeerUnreachable,
    ProtocolError,
    joined,
)

logger = logging.getLogger(__name__)
CLOSE_TIMEOUT_S = 0.1  # for the peer's half of a WebSocket's closing, after a protocol error
NO_LIMIT = 2**31 - 1
GOING_AWAY = (1001).to_bytes(2, "big")

WebSocket = web.WebSocketResponse | aiohttp.ClientWebSocketResponse


class WebSocketLink:
    def __init__(self, socket: WebSocket, transport: asyncio.Transport) -> None:
        self.peer = address_of(transport)
        self.closed = False
        self._socket = socket
        self._transport = transport
        transport.set_write_buffer_limits(high=NO_LIMIT)
        self._reading = asyncio.Event()
        self._reading.set()
        self.reader: asyncio.Task[None] | None = None  # owned: a loop refers to its tasks weakly

    def send(self, *parts: Buffer) -> None:
        if not self.closed:
            self._write(self._socket.send_bytes(joined(parts)))

    @property
    def pending_bytes(self) -> int:
        return self._transport.get_write_buffer_size()

    def pause_reading(self) -> None:
        self._reading.clear()

    def resume_reading(self) -> None:
        self._reading.set()

    def close(self) -> None:
        if not self.closed:
            self._write(self._socket.send_frame(GOING_AWAY, WSMsgType.CLOSE))
            self._end()
            self._transport.close()

    def abort(self) -> None:
        self._end()
        self._transport.abort()

    async def read(self, handler: LinkHandler) -> None:
        """Until the link is closed, by either end."""
        error: Exception | None = None
        try:
            while not self.closed:
                message = await self._socket.receive()
                if not self._reading.is_set():
                    await self._reading.wait()
                error = self._take(message, handler) or error
        finally:
            self.abort()
            deliver_end(self, handler, error)

    def _take(self, message: aiohttp.WSMessage, handler: LinkHandler) -> Exception | None:
        """Why the link ends with this message, if it does so abnormally."""
        if self.closed:
            return None
        if message.type is WSMsgType.BINARY:
            return deliver(self, handler, memoryview(message.data))
        self._end()
        if message.type is WSMsgType.TEXT:
            error = ProtocolError("a text message; frames are binary")
        elif isinstance(message.data, aiohttp.WebSocketError):
            error = ProtocolError(str(message.data))
        else:
            return message.data if isinstance(message.data, Exception) else None
        logger.warning("closing the link to %s: %s", self.peer, error)
        return error

    def _end(self) -> None:
        self.closed = True
        self._reading.set()

    def _write(self, sending: Coroutine[Any, Any, None]) -> None:
        try:
            sending.send(None)
        except (StopIteration, ConnectionResetError):
            return
        raise AssertionError("sending waits: it would never be taken up again")


class WebSocketSide:
    """Makes the protocols of a listener's connections that ask for RPC_PATH."""

    def __init__(
        self,
        accept: Accept,
        max_frame_bytes: int,
        on_link: Callable[[Link], None],
        on_gone: Callable[[Link], None],
    ) -> None:
        self._accept = accept
        self._max_frame_bytes = max_frame_bytes
        self._on_link = on_link
        self._on_gone = on_gone
        self._server = web.Server(self._serve, access_log=None)

    def protocol(self) -> asyncio.Protocol:
        return self._server()

    @property
    def connections(self) -> int:
        return len(self._server.connections)

    async def close(self) -> None:
        await self._server.shutdown(CLOSE_TIMEOUT_S)

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        socket = web.WebSocketResponse(
            timeout=CLOSE_TIMEOUT_S,
            autoclose=False,
            compress=False,
            max_msg_size=self._max_frame_bytes + 1,  # aiohttp's limit is exclusive
        )
        await socket.prepare(request)
        if request.transport is None:
            return socket
        link = WebSocketLink(socket, request.transport)
        self._on_link(link)
        try:
            await link.read(self._accept(link))
        finally:
            self._on_gone(link)
        return socket


class _ClientWebSocket(aiohttp.ClientWebSocketResponse):
    """Keeps its transport, which aiohttp shows to servers only, and the response it came with,
    whose connection nobody else lets go of when the peer closes first."""

    transport: asyncio.Transport

    def __init__(
        self, reader: Any, writer: Any, protocol: Any, response: Any, *args: Any, **options: Any
    ) -> None:
        super().__init__(reader, writer, protocol, response, *args, **options)
        self.transport = writer.transport
        self.response: aiohttp.ClientResponse = response


async def connect(
    address: Address, accept: Accept, *, max_frame_bytes: int, timeout_ms: int
) -> Link:
    session = aiohttp.ClientSession(
        timeout=aiohttp.ClientTimeout(total=None), ws_response_class=_ClientWebSocket
    )
    host = f"[{address.host}]" if ":" in address.host else address.host
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            socket = await session.ws_connect(
                f"http://{host}:{address.port}{RPC_PATH.decode()}",
                timeout=aiohttp.ClientWSTimeout(ws_close=CLOSE_TIMEOUT_S),
                autoclose=False,
                compress=0,
                max_msg_size=max_frame_bytes + 1,
            )
    except BaseException as error:
        await session.close()
        if isinstance(error, aiohttp.ClientConnectorError) and isinstance(
            error.os_error, ConnectionRefusedError
        ):
            raise PeerRefused(f"{address} refuses connections") from error
        if isinstance(error, aiohttp.ClientError | OSError):
            raise PeerUnreachable(f"{address} is not reached: {error!r}") from error
        raise
    assert isinstance(socket, _ClientWebSocket)
    link = WebSocketLink(socket, socket.transport)
    link.reader = asyncio.get_running_loop().create_task(_read(link, accept(link), socket, session))
    link.reader.add_done_callback(raise_failure)
    return link


async def _read(
    link: WebSocketLink,
    handler: LinkHandler,
    socket: _ClientWebSocket,
    session: aiohttp.ClientSession,
) -> None:
    try:
        await link.read(handler)
    finally:
        socket.response.close()
        await session.close()
