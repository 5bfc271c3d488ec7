"""Control frames of foreign clients: how many of them one node handles, and their answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from quorate.quorum.rpc.frame_link import REPORT_ABOVE_BYTES
from quorate.quorum.rpc.websocket_frames import (
    BINARY,
    HEADER_64,
    MASKED,
    MAX_CONTROL_FRAMES,
    MAX_MASKED_BYTES,
    PING,
    PONG,
    SIZE_64,
    WebSocketLink,
)
from tests.unit.rpc.nets import Recorder

EMPTY_PING = bytes((PING, MASKED)) + bytes(4)
EMPTY_PONG = bytes((PONG, 0))
EMPTY_MESSAGE = bytes((BINARY, 0))


class Socket(asyncio.Transport):
    """A transport that keeps what is written. The peer reads nothing if `unread` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.written = bytearray()
        self.unread = 0
        self.aborts = 0

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("10.0.0.1", 5000) if name == "peername" else default

    def write(self, data: Any) -> None:
        self.written += data

    def get_write_buffer_size(self) -> int:
        return self.unread

    def abort(self) -> None:
        self.aborts += 1


def with_link(scenario: Callable[[WebSocketLink, Socket, Recorder], None]) -> None:
    async def run() -> None:
        handler, socket = Recorder(), Socket()
        link = WebSocketLink(handler, 1 << 22, masks=False)
        link.connection_made(socket)
        scenario(link, socket, handler)

    asyncio.run(run())


def test_a_flood_of_control_frames_closes_the_link() -> None:
    """All frames that arrive together are handled without a pause. A read of the socket can hold
    more than 40,000 of them, which took 0.3 s."""
    for frame in (EMPTY_PING, EMPTY_PONG):

        def scenario(
            link: WebSocketLink, socket: Socket, handler: Recorder, frame: bytes = frame
        ) -> None:
            link.data_received(frame * MAX_CONTROL_FRAMES)
            assert socket.aborts == 0
            link.data_received(EMPTY_MESSAGE + frame * MAX_CONTROL_FRAMES + EMPTY_MESSAGE)
            assert socket.aborts == 0
            assert handler.frames == [b"", b""]
            link.data_received(frame * (MAX_CONTROL_FRAMES + 1) + EMPTY_MESSAGE)
            assert socket.aborts == 1
            assert handler.frames == [b"", b""]

        with_link(scenario)


def test_a_peer_that_does_not_read_gets_no_pongs() -> None:
    """Otherwise the answers would fill the memory of the node, and no budget counts them."""

    def scenario(link: WebSocketLink, socket: Socket, handler: Recorder) -> None:
        socket.unread = REPORT_ABOVE_BYTES
        link.data_received(EMPTY_PING)
        assert bytes(socket.written) == EMPTY_PONG
        socket.unread += 1
        link.data_received(EMPTY_PING)
        assert bytes(socket.written) == EMPTY_PONG
        socket.unread = 0
        link.data_received(EMPTY_PING)
        assert bytes(socket.written) == EMPTY_PONG * 2

    with_link(scenario)


def test_a_large_masked_frame_is_refused_by_its_header() -> None:
    """To remove the mask of 32 MB takes 0.1 s. The mask of a node is 0."""

    def scenario(link: WebSocketLink, socket: Socket, handler: Recorder) -> None:
        def header(size: int, key: bytes) -> bytes:
            return HEADER_64.pack(BINARY, MASKED | SIZE_64, size) + key

        link.data_received(EMPTY_MESSAGE)
        link.data_received(header(2 * MAX_MASKED_BYTES, bytes(4)) + bytes(2 * MAX_MASKED_BYTES))
        link.data_received(header(MAX_MASKED_BYTES, b"mask") + bytes(MAX_MASKED_BYTES))
        assert [len(each) for each in handler.frames] == [0, 2 * MAX_MASKED_BYTES, MAX_MASKED_BYTES]
        assert socket.aborts == 0
        link.data_received(header(MAX_MASKED_BYTES + 1, b"mask"))
        assert socket.aborts == 1

    with_link(scenario)
