"""One end of a simulated TCP connection: what holds for frames (`link.py`) and bytes (`stream.py`).

Data arrives late, in order and once, or the connection breaks. A blocked path holds it back. After
`kill -9` the kernel still sends what it has, and then closes the connection. If it held data that
the process had not read, it resets the connection. After a power loss nothing is sent.
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
    """`closed` is True as soon as nothing more can be sent or received."""

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
        self._held: list[bytes | None] = []  # by a blocked path; None: the end
        self._reading = listener is not None  # the connecting end: once it has its handler
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
        """Deliver what has arrived, unless the process does not read."""

    @abstractmethod
    def _take(self, data: bytes | None) -> None:
        """Keep what has arrived for the process; None is the end."""

    @abstractmethod
    def _has_unread(self) -> bool:
        """Return True if something has arrived that the process has not read."""

    @abstractmethod
    def _discard(self) -> None:
        """Forget what was not sent or read, because the connection is closed."""

    @abstractmethod
    def _lost(self, error: Exception | None) -> None:
        """Tell the process that the connection is closed."""

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
        """Broken in the middle: both ends hear of it at once, what is on its way is lost."""
        self.other._end_soon(error)
        self._end_soon(error)

    def die(self, *, silently: bool) -> None:
        """The process of this end is gone, `silently` with the power of its machine."""
        if silently:
            self._held.clear()
        elif not self.closed and self._has_unread():
            self._reset_other()
        elif not self.closed:
            self._transmit(None)
        self.closed = self._ended = True
        self._forget()

    def send_held(self, delay_s: float) -> None:
        """The path is free again; TCP notices when it next resends."""
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
        """Unless a blocked path still holds something of it back."""
        if self._held:
            return
        self._network.links.pop(self, None)
        if self._listener is not None:
            self._listener.links.pop(self, None)
