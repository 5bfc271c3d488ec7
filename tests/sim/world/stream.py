"""One end of a simulated TCP connection, as an asyncio transport for the production frame links.

Bytes arrive in pieces that do not end where frames end. A kernel buffer of a bounded size takes
written bytes. The rest waits in the process, where asyncio counts it for its back-pressure. A
receiver that does not read therefore stops its sender.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from quorate.quorum.rpc.frame_link import IDENTITY
from quorate.quorum.rpc.kafka_frames import KafkaLink
from quorate.quorum.rpc.websocket_frames import WebSocketLink
from quorate.quorum.seams import Accept, Address, Buffer, Link, Wire
from tests.sim.world.connection import SimConnection
from tests.sim.world.host import Host

if TYPE_CHECKING:
    from tests.sim.world.network import SimListener, SimNetwork

KERNEL_BYTES = 64 * 1024
"""The number of bytes of one direction that the kernels of both ends hold."""
HIGH_WATER_BYTES, LOW_WATER_BYTES = 64 * 1024, 16 * 1024
"""asyncio's bounds of the write buffer, at which the protocol is paused and resumed."""
WHOLE_SHARE = 0.6
"""The share of the writes that arrive in one piece."""


class SimStream(SimConnection, asyncio.Transport):
    other: SimStream

    def __init__(
        self,
        network: SimNetwork,
        host: Host,
        peer: Address,
        listener: SimListener | None = None,
    ) -> None:
        asyncio.Transport.__init__(self)
        SimConnection.__init__(self, network, host, peer, listener)
        self._protocol: asyncio.Protocol = asyncio.Protocol()
        self._buffer = bytearray()  # written bytes that the kernel has not accepted
        # bytes that the kernel has accepted and the other process has not read
        self._kernel_bytes = 0
        self._unread = bytearray()
        self._end_came = False
        self._writing_paused = False
        self._closing = False

    # -- asyncio.Transport ------------------------------------------------------------------------

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        if name == IDENTITY:
            identity = self.other.host.identity
            return identity if identity.verified or self._network.identities else default
        return (self.peer.host, self.peer.port) if name == "peername" else default

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        assert isinstance(protocol, asyncio.Protocol)
        self._protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._protocol

    def is_closing(self) -> bool:
        return self._closing or self.closed

    def get_write_buffer_size(self) -> int:
        return len(self._buffer)

    def write(self, data: Buffer) -> None:
        if self.is_closing() or self.host.dead:
            return
        self._buffer += data
        self._to_kernel()
        if len(self._buffer) > HIGH_WATER_BYTES and not self._writing_paused:
            self._writing_paused = True
            self._protocol.pause_writing()

    def close(self) -> None:
        if not self.is_closing():
            self._closing = True
            self._to_kernel()

    # -- the sending side -------------------------------------------------------------------------

    def _to_kernel(self) -> None:
        """Pass bytes on as far as the kernel's buffer has room, and then the end of the stream."""
        path = self._path
        room = min(KERNEL_BYTES, path.kernel_bytes or KERNEL_BYTES) - self._kernel_bytes
        if len(self._buffer) > max(0, room):
            path.squeezed += 1
        while self._buffer and room > 0 and not self.closed:
            size = self._piece(min(room, len(self._buffer)))
            piece = bytes(self._buffer[:size])
            del self._buffer[:size]
            room -= size
            self._kernel_bytes += size
            self._transmit(piece)
        if self._closing and not self._buffer and not self.closed:
            self._transmit(None)
            self._end_soon(None)

    def _piece(self, size: int) -> int:
        random = self._network.random
        if size < 2 or random.random() < WHOLE_SHARE:
            return size
        self._network.pieces += 1
        return random.randrange(1, size)

    def taken(self, size: int) -> None:
        """Note that the other process has read `size` bytes, so the kernel has room for more."""
        self._kernel_bytes -= size
        if self._buffer or self._closing:
            self.host.call_soon(self._continue)

    def _continue(self) -> None:
        if self.closed:
            return
        self._to_kernel()
        if self._writing_paused and len(self._buffer) <= LOW_WATER_BYTES:
            self._writing_paused = False
            self._protocol.resume_writing()

    # -- the receiving side -----------------------------------------------------------------------

    def read(self) -> None:
        """Deliver arrived data, unless the process does not read."""
        if self.closed or not self._reading:
            return
        if self._incoming.unread:
            self._incoming.kept += bool(self._unread)
            return
        data, self._unread = bytes(self._unread), bytearray()
        if data:
            self.other.taken(len(data))
            self._protocol.data_received(data)
        if self._end_came and not self._unread and not self.closed:
            self._end_soon(None)

    def _take(self, data: bytes | None) -> None:
        if data is None:
            self._end_came = True
        else:
            self._unread += data

    def _has_unread(self) -> bool:
        return bool(self._unread)

    def _discard(self) -> None:
        self._buffer.clear()

    def _lost(self, error: Exception | None) -> None:
        self._protocol.connection_lost(error)


def link_over(
    stream: SimStream, wire: Wire, accept: Accept, max_frame_bytes: int, *, connects: bool
) -> Link:
    """Return the production link over `stream`. The handshake of WebSockets is left out."""
    if wire is Wire.NODE:
        websocket = WebSocketLink(accept, max_frame_bytes, masks=connects)
        websocket.take_over(stream)
        if connects:
            stream.resume_reading()
        return websocket
    link = KafkaLink(accept, max_frame_bytes)
    stream.set_protocol(link)
    link.connection_made(stream)
    if connects:
        stream.resume_reading()
    return link
