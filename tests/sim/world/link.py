"""One end of a simulated link that carries whole frames."""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING

from quorate.quorum.rpc.delivery import deliver
from quorate.quorum.seams import Address, Buffer, LinkHandler, PeerIdentity, ProtocolError, Wire
from tests.sim.world.connection import SimConnection
from tests.sim.world.host import Host

if TYPE_CHECKING:
    from tests.sim.world.network import SimListener, SimNetwork

logger = logging.getLogger(__name__)


class SimLink(SimConnection):
    other: SimLink

    def __init__(
        self,
        network: SimNetwork,
        host: Host,
        peer: Address,
        wire: Wire,
        max_frame_bytes: int,
        listener: SimListener | None = None,
    ) -> None:
        super().__init__(network, host, peer, listener)
        self.handler: LinkHandler = _Nobody()
        self.identity: PeerIdentity | None = None
        # bytes that the other end has not read; a real link counts only those outside of the kernel
        self.pending_bytes = 0
        self._wire = wire
        self._max_frame_bytes = max_frame_bytes
        self._unread: deque[bytes | None] = deque()  # None: the other end closed
        self._error: Exception | None = None  # the exception that the handler raised

    @property
    def asks(self) -> bool:
        """Return True if this end opened the link, and thus receives answers."""
        return self._listener is None

    @property
    def wire(self) -> Wire:
        return self._wire

    def start(self, handler: LinkHandler) -> None:
        self.handler = handler
        self.resume_reading()

    def send(self, *parts: Buffer) -> None:
        if not self.closed:
            frame = b"".join(parts)
            self.pending_bytes += len(frame)
            self._transmit(frame)

    def close(self) -> None:
        if not self.closed:
            self._transmit(None)
            self._end_soon(None)

    def read(self) -> None:
        """Deliver arrived data, unless the process does not read."""
        if self._incoming.unread:
            self._incoming.kept += bool(self._unread)
            return
        while self._reading and self._unread and not self.closed:
            frame = self._unread.popleft()
            self.other.pending_bytes -= len(frame or b"")
            if frame is None:
                self._end_soon(None)
            elif len(frame) > self._max_frame_bytes:
                logger.warning("closing the link to %s: a frame of %d bytes", self.peer, len(frame))
                self._reset_other()
                self._end_soon(ProtocolError("frame too large"))
            else:
                if self._network.alter is not None:
                    frame = self._network.alter(self, frame)
                # the receiver may patch a Kafka frame in place, as with the real transport
                owned = bytearray(frame) if self._wire is Wire.KAFKA else frame
                self._error = deliver(self, self.handler, memoryview(owned)) or self._error

    def _take(self, data: bytes | None) -> None:
        self._unread.append(data)

    def _has_unread(self) -> bool:
        return any(each is not None for each in self._unread)

    def _discard(self) -> None:
        self._unread.clear()

    def _lost(self, error: Exception | None) -> None:
        self.handler.on_closed(self._error or error)


class _Nobody:
    """The handler of a link whose caller no longer waits for it."""

    def on_frame(self, frame: memoryview) -> None: ...

    def on_closed(self, error: Exception | None) -> None: ...
