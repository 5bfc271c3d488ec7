"""The common base of simulated frame links (`link.py`) and byte streams (`stream.py`).

A SimConnection is one end of a simulated TCP connection. Data arrives late, in order and once, or
the connection breaks. A blocked path holds data back. After `kill -9`, the kernel still sends the
data that it holds, and then closes the connection. If the kernel holds data that the process had
not read, it resets the connection instead. After a power loss, the machine sends nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Self

from quorate.quorum.seams import Address
from tests.sim.world.host import Host

if TYPE_CHECKING:
    from tests.sim.world.network import Path, SimListener, SimNetwork

MIN_GAP_S = 1e-6  # between two pieces of data


class SimConnection(ABC):
    """One end of a connection. `closed` is True as soon as this end can neither send nor
    receive."""

    other: Any

    def __init__(
        self, network: SimNetwork, host: Host, peer: Address, listener: SimListener | None
    ) -> None:
        self.host = host
        self.peer = peer
        self.closed = False
        self._network = network
        self._listener = listener
        self._path: Path = network.path(host.name, peer.host)
        self._incoming: Path = network.path(peer.host, host.name)
        # data that a blocked path holds back; None: the end of the stream
        self._held: list[bytes | None] = []
        # the connecting end reads only after it has its handler
        self._reading = listener is not None
        self._ended = False
        self._last_arrival_s = 0.0
        network.links[self] = None
        if listener is not None:
            listener.links[self] = None

    def join(self, other: Self) -> None:
        """Make the two ends one connection."""
        self.other, other.other = other, self

    # -- the two kinds of connections ------------------------------------------------------------

    @abstractmethod
    def read(self) -> None:
        """Deliver arrived data, unless the process does not read."""

    @abstractmethod
    def _take(self, data: bytes | None) -> None:
        """Keep arrived data until the process reads it. None is the end of the stream."""

    @abstractmethod
    def _has_unread(self) -> bool:
        """Return True if data has arrived that the process has not read."""

    @abstractmethod
    def _discard(self) -> None:
        """Discard the unsent and the unread data, because the connection is closed."""

    @abstractmethod
    def _lost(self, error: Exception | None) -> None:
        """Notify the process that the connection is closed."""

    # -- the process -----------------------------------------------------------------------------

    def pause_reading(self) -> None:
        self._reading = False

    def resume_reading(self) -> None:
        self._reading = True
        self.host.call_soon(self.read)

    def abort(self) -> None:
        if not self._ended and not self.closed:
            self._reset_other()
        self._end_soon(None)

    # -- the network and its faults --------------------------------------------------------------

    def reset(self, error: Exception) -> None:
        """Break the connection. Both ends are notified immediately, and data in flight is lost."""
        self.other._end_soon(error)
        self._end_soon(error)

    def die(self, *, silently: bool) -> None:
        """End this end, because its process has ended. `silently` means that its machine lost
        power."""
        if silently:
            self._held.clear()
        elif not self.closed and self._has_unread():
            self._reset_other()
        elif not self.closed:
            self._transmit(None)
        self.closed = self._ended = True
        self._forget()

    def send_held(self, delay_s: float) -> None:
        """Send the held data, because the path is free again. TCP resends after `delay_s`."""
        held, self._held = self._held, []
        if held:
            earliest_s = self._network.loop.time() + delay_s
            self._last_arrival_s = max(self._last_arrival_s, earliest_s)
        for data in held:
            self._transmit(data)
        if self._ended:
            self._forget()

    def _transmit(self, data: bytes | None) -> None:
        if self._path.blocked:
            self._path.hindered += 1
            self._held.append(data)
            return
        network, other = self._network, self.other
        if other._ended or network.breaks(self._path):
            self._lose()
            return
        size = len(data or b"")
        arrival_s = network.arrival_s(self._path, size)
        gap_s = MIN_GAP_S + size / self._path.settings.bytes_per_ms / 1000
        self._last_arrival_s = max(arrival_s, self._last_arrival_s + gap_s)
        other.host.call_at(self._last_arrival_s, lambda: other._arrived(data))

    def _arrived(self, data: bytes | None) -> None:
        if not self.closed:
            self._take(data)
            self.read()

    def _lose(self) -> None:
        """Handle data that was sent to an ended peer, or that broke the connection. A reset comes
        back if the peer's machine is up and the way back is free."""
        if self.other._ended and not self._network.is_up(self.peer.host):
            return
        self.other._end_soon(ConnectionResetError(f"reset by {self.host.name}"))
        back = self._network.path(self.peer.host, self.host.name)
        if not back.blocked:
            self.host.call_at(self._network.arrival_s(back, 0), self._on_reset)

    def _reset_other(self) -> None:
        """Send a reset, which overtakes data. A blocked path sends the reset when it is free
        again."""
        if self._path.blocked:
            self._held = [None]
        else:
            arrival_s = self._network.arrival_s(self._path, 0)
            self.other.host.call_at(arrival_s, self.other._on_reset)

    def _on_reset(self) -> None:
        self._end_soon(ConnectionResetError(f"reset by {self.peer.host}"))

    def _end_soon(self, error: Exception | None) -> None:
        if self.closed:
            return
        self.closed = True
        self._discard()
        self.host.call_soon(lambda: self._end(error))

    def _end(self, error: Exception | None) -> None:
        self._ended = True
        self._forget()
        self._lost(error)

    def _forget(self) -> None:
        """Remove this end from the network, unless a blocked path still holds back some of its
        data."""
        if self._held:
            return
        self._network.links.pop(self, None)
        if self._listener is not None:
            self._listener.links.pop(self, None)
