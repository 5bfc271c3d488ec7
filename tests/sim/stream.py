"""One end of a simulated TCP connection, as an asyncio transport for the production frame links.

Bytes arrive in pieces that do not end where frames end. A kernel buffer of a bounded size takes
what is written. The rest waits in the process, and asyncio's signals of back-pressure come from
there. A receiver that does not read therefore stops its sender.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from quorate.quorum.rpc.kafka_frames import KafkaLink
from quorate.quorum.rpc.websocket_frames import WebSocketLink
from quorate.quorum.seams import Accept, Address, Buffer, Link, Wire
from tests.sim.host import Host

if TYPE_CHECKING:
    from tests.sim.network import Path, SimListener, SimNetwork

KERNEL_BYTES = 64 * 1024
"""The bytes of one direction that the kernels of both ends hold."""
HIGH_WATER_BYTES, LOW_WATER_BYTES = 64 * 1024, 16 * 1024
"""asyncio's bounds of the write buffer, at which the protocol is paused and resumed."""
MIN_GAP_S = 1e-6  # between two pieces
WHOLE_SHARE = 0.6
"""The share of the writes that arrive in one piece."""


class SimStream(asyncio.Transport):
    """`closed` is True as soon as nothing more can be written or received."""

    other: SimStream

    def __init__(
        self,
        network: SimNetwork,
        host: Host,
        peer: Address,
        listener: SimListener | None = None,
    ) -> None:
        super().__init__()
        self.host = host
        self.peer = peer
        self.closed = False
        self._network = network
        self._listener = listener
        self._path: Path = network.path(host.name, peer.host)
        self._incoming: Path = network.path(peer.host, host.name)
        self._protocol: asyncio.Protocol = asyncio.Protocol()
        self._buffer = bytearray()  # written, and not accepted by the kernel
        self._kernel_bytes = 0  # accepted by the kernel, and not read by the other process
        self._held: list[bytes | None] = []  # by a blocked path; None: the end of the stream
        self._unread = bytearray()
        self._end_came = False
        self._reading = listener is not None  # the connecting end: once it has its link
        self._writing_paused = False
        self._closing = False
        self._ended = False
        self._last_arrival_s = 0.0
        network.links[self] = None
        if listener is not None:
            listener.links[self] = None

    def join(self, other: SimStream) -> None:
        self.other, other.other = other, self

    # -- asyncio.Transport ------------------------------------------------------------------------

    def get_extra_info(self, name: str, default: Any = None) -> Any:
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

    def pause_reading(self) -> None:
        self._reading = False

    def resume_reading(self) -> None:
        self._reading = True
        self.host.call_soon(self.read)

    def close(self) -> None:
        if not self.is_closing():
            self._closing = True
            self._to_kernel()

    def abort(self) -> None:
        if not self._ended and not self.closed:
            self._reset_other()
        self._end_soon(None)

    # -- the network and its faults ---------------------------------------------------------------

    def reset(self, error: Exception) -> None:
        """Broken in the middle: both ends hear of it at once, what is on its way is lost."""
        self.other._end_soon(error)
        self._end_soon(error)

    def die(self, *, silently: bool) -> None:
        """The process of this end is gone."""
        if not self.closed and not silently:
            self._reset_other()
        if silently:
            self._held.clear()
        self.closed = self._ended = True
        self._forget()

    def send_held(self, delay_s: float) -> None:
        """The path is free again; TCP notices when it next resends."""
        held, self._held = self._held, []
        if held:
            earliest_s = self._network.loop.time() + delay_s
            self._last_arrival_s = max(self._last_arrival_s, earliest_s)
        for piece in held:
            self._transmit(piece)
        if self._ended:
            self._forget()

    def _to_kernel(self) -> None:
        """Pass on what fits into the kernel's buffer, and the end of the stream behind it."""
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

    def _transmit(self, piece: bytes | None) -> None:
        if self._path.blocked:
            self._path.hindered += 1
            self._held.append(piece)
            return
        network, other = self._network, self.other
        if other._ended or network.breaks(self._path):
            self._lose()
            return
        size = len(piece or b"")
        arrival_s = network.arrival_s(self._path, size)
        gap_s = MIN_GAP_S + size / self._path.settings.bytes_per_ms / 1000
        self._last_arrival_s = max(arrival_s, self._last_arrival_s + gap_s)
        other.host.call_at(self._last_arrival_s, lambda: other._arrived(piece))

    def _lose(self) -> None:
        """Sent to an end that is gone, or broken on the way: a reset comes back if it can."""
        if self.other._ended and not self._network.is_up(self.peer.host):
            return
        self.other._end_soon(ConnectionResetError(f"reset by {self.host.name}"))
        back = self._network.path(self.peer.host, self.host.name)
        if not back.blocked:
            self.host.call_at(self._network.arrival_s(back, 0), self._on_reset)

    def _reset_other(self) -> None:
        """A reset overtakes data; a blocked one is sent when the path is free again."""
        if self._path.blocked:
            self._held = [None]
        else:
            arrival_s = self._network.arrival_s(self._path, 0)
            self.other.host.call_at(arrival_s, self.other._on_reset)

    def _on_reset(self) -> None:
        self._end_soon(ConnectionResetError(f"reset by {self.peer.host}"))

    # -- the receiving side -----------------------------------------------------------------------

    def _arrived(self, piece: bytes | None) -> None:
        if piece is None:
            self._end_came = True
        else:
            self._unread += piece
        self.read()

    def read(self) -> None:
        """Deliver what has arrived, unless the process does not read."""
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

    def _end_soon(self, error: Exception | None) -> None:
        if self.closed:
            return
        self.closed = True
        self._buffer.clear()
        self.host.call_soon(lambda: self._end(error))

    def _end(self, error: Exception | None) -> None:
        self._ended = True
        self._forget()
        self._protocol.connection_lost(error)

    def _forget(self) -> None:
        """Unless a blocked path still holds something of it back."""
        if self._held:
            return
        self._network.links.pop(self, None)
        if self._listener is not None:
            self._listener.links.pop(self, None)


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
