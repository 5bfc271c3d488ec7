"""The buffers and the backlog of real listening sockets, on asyncio and on uvloop."""

from __future__ import annotations

import asyncio
import os
import socket
import struct
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import uvloop

from quorate.quorum.rpc.socket_options import SocketOptions
from quorate.quorum.rpc.transport import AioListener, AioTransport
from quorate.quorum.seams import Address, Link, Wire

LOOPS = pytest.mark.parametrize(
    "new_loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"]
)
BACKLOG_AT = 28
"""The position in TCP_INFO of the backlog of a listening socket in Linux, a uint32."""


class Ignore:
    """A handler that does nothing."""

    def __init__(self, link: Link) -> None:
        self.link = link

    def on_frame(self, frame: memoryview) -> None:
        pass

    def on_closed(self, error: Exception | None) -> None:
        pass


def options_of(found: socket.socket) -> tuple[int, int]:
    return (
        found.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF),
        found.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF),
    )


async def accepted(options: SocketOptions) -> tuple[int, int]:
    """Return the sizes of both buffers of a connection that a listener accepted."""
    sizes: asyncio.Future[tuple[int, int]] = asyncio.get_running_loop().create_future()

    def accept(link: Link) -> Ignore:
        with socket.socket(fileno=os.dup(transport_of(link).fileno())) as same:
            sizes.set_result(options_of(same))
        return Ignore(link)

    listener = await AioTransport(sockets=options).listen(
        Address("127.0.0.1", 0), {Wire.KAFKA: accept}, max_frame_bytes=100
    )
    client = AioTransport()
    link = await client.connect(
        listener.address, Wire.KAFKA, Ignore, max_frame_bytes=100, timeout_ms=5000
    )
    found = await sizes
    link.abort()
    await listener.close()
    return found


def transport_of(link: Link) -> socket.socket:
    found: socket.socket = link._transport.get_extra_info("socket")  # type: ignore[attr-defined]
    return found


@LOOPS
def test_accepted_connections_have_the_buffers(
    new_loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    with asyncio.Runner(loop_factory=new_loop) as runner:
        send, receive = runner.run(accepted(SocketOptions(20_000, 30_000)))
        default = runner.run(accepted(SocketOptions()))
    factor = 2 if sys.platform == "linux" else 1  # the kernel counts its own overhead
    assert (send, receive) == (factor * 20_000, factor * 30_000)
    assert default[0] > send and default[1] > receive


@pytest.mark.skipif(sys.platform != "linux", reason="TCP_INFO tells the backlog in Linux")
@LOOPS
def test_the_backlog(new_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def backlog(options: SocketOptions) -> int:
        listener = await AioTransport(sockets=options).listen(
            Address("127.0.0.1", 0), {Wire.KAFKA: Ignore}, max_frame_bytes=100
        )
        assert isinstance(listener, AioListener)
        (bound,) = listener._server.sockets
        with socket.socket(fileno=os.dup(bound.fileno())) as same:
            info = same.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
        await listener.close()
        (found,) = struct.unpack_from("=I", info, BACKLOG_AT)
        assert isinstance(found, int)
        return found

    with asyncio.Runner(loop_factory=new_loop) as runner:
        assert runner.run(backlog(SocketOptions(backlog=7))) == 7
        most = int(Path("/proc/sys/net/core/somaxconn").read_text())
        assert runner.run(backlog(SocketOptions())) == min(1024, most)
