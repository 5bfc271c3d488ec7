"""One end of a simulated link, and what is on its way to the other end."""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING

from quorate.quorum.rpc.delivery import deliver
from quorate.quorum.seams import Address, Buffer, LinkHandler, ProtocolError, Wire
from tests.sim.host import Host

if TYPE_CHECKING:
    from tests.sim.network import Path, SimListener, SimNetwork

logger = logging.getLogger(__name__)
MIN_GAP_S = 1e-6  # between two frames of a link


class SimLink:
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
        self.host = host
        self.peer = peer
        self.closed = False
        self.handler: LinkHandler = _Nobody()
        self.pending_bytes = 0  # all that the other end has not read; a kernel would take a part
        self._network = network
        self._wire = wire
        self._max_frame_bytes = max_frame_bytes
        self._listener = listener
        self._path: Path = network.path(host.name, peer.host)
        self._incoming: Path = network.path(peer.host, host.name)
        self._last_arrival_s = 0.0
        self._held: list[bytes | None] = []  # by a blocked path
        self._coming: deque[bytes | None] = deque()  # to this end; None: the other end closed
        self._arrived = 0  # of `_coming`: may be delivered
        self._reading = listener is not None  # the connecting end: from `start` on
        self._ended = False
        self._error: Exception | None = None  # what the handler raised
        network.links[self] = None
        if listener is not None:
            listener.links[self] = None

    def join(self, other: SimLink) -> None:
        self.other, other.other = other, self

    def start(self, handler: LinkHandler) -> None:
        self.handler = handler
        self.resume_reading()

    def send(self, *parts: Buffer) -> None:
        if not self.closed:
            frame = b"".join(parts)
            self.pending_bytes += len(frame)
            self._transmit(frame)

    def pause_reading(self) -> None:
        self._reading = False

    def resume_reading(self) -> None:
        self._reading = True
        self.host.call_soon(self.read)

    def close(self) -> None:
        if not self.closed:
            self._transmit(None)
            self._end_soon(None)

    def abort(self) -> None:
        if not self._ended and not self.closed:
            self._reset_other()
        self._end_soon(None)

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
        for frame in held:
            self._transmit(frame)
        if self._ended:
            self._forget()

    def _transmit(self, frame: bytes | None) -> None:
        if self._path.blocked:
            self._path.hindered += 1
            self._held.append(frame)
            return
        network, other = self._network, self.other
        if other._ended or network.breaks(self._path):
            self._lose(frame)
            return
        size = len(frame or b"")
        arrival_s = network.arrival_s(self._path, size)
        gap_s = MIN_GAP_S + size / self._path.settings.bytes_per_ms / 1000
        self._last_arrival_s = max(arrival_s, self._last_arrival_s + gap_s)
        other._coming.append(frame)
        other.host.call_at(self._last_arrival_s, other._arrive)

    def _lose(self, frame: bytes | None) -> None:
        """Sent to an end that is gone, or broken on the way: a reset comes back if it can."""
        if self.other._ended and not self._network.is_up(self.peer.host):
            return
        self.other._end_soon(ConnectionResetError(f"reset by {self.host.name}"))
        back = self._network.path(self.peer.host, self.host.name)
        if not back.blocked:
            self.host.call_at(self._network.arrival_s(back, 0), self._on_reset)

    def _reset_other(self) -> None:
        """A reset overtakes frames; a blocked one is sent when the path is free again."""
        if self._path.blocked:
            self._held = [None]
        else:
            arrival_s = self._network.arrival_s(self._path, 0)
            self.other.host.call_at(arrival_s, self.other._on_reset)

    def _on_reset(self) -> None:
        self._end_soon(ConnectionResetError(f"reset by {self.peer.host}"))

    def _arrive(self) -> None:
        self._arrived += 1
        self.read()

    def read(self) -> None:
        """Deliver what has arrived, unless the process does not read."""
        if self._incoming.unread:
            self._incoming.kept += self._arrived > 0
            return
        while self._reading and self._arrived and not self.closed:
            self._arrived -= 1
            frame = self._coming.popleft()
            self.other.pending_bytes -= len(frame or b"")
            if frame is None:
                self._end_soon(None)
            elif len(frame) > self._max_frame_bytes:
                logger.warning("closing the link to %s: a frame of %d bytes", self.peer, len(frame))
                self._reset_other()
                self._end_soon(ProtocolError("frame too large"))
            else:
                # Kafka's frames may be patched in place, as those of the real transport
                owned = bytearray(frame) if self._wire is Wire.KAFKA else frame
                self._error = deliver(self, self.handler, memoryview(owned)) or self._error

    def _end_soon(self, error: Exception | None) -> None:
        if self.closed:
            return
        self.closed = True
        self._coming.clear()
        self.host.call_soon(lambda: self._end(error))

    def _end(self, error: Exception | None) -> None:
        self._ended = True
        self._forget()
        self.handler.on_closed(self._error or error)

    def _forget(self) -> None:
        """Unless a blocked path still holds something of it back."""
        if self._held:
            return
        self._network.links.pop(self, None)
        if self._listener is not None:
            self._listener.links.pop(self, None)


class _Nobody:
    """The handler of a link whose caller no longer waits for it."""

    def on_frame(self, frame: memoryview) -> None: ...

    def on_closed(self, error: Exception | None) -> None: ...
