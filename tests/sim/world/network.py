"""A simulated network between hosts, with latency, cut directions and broken links.

Conditions belong to a pair (from, to), so every fault can be one-way. Links are ordered streams, as
those of TCP. A lost frame is sent again, so it arrives late or its link breaks. No frame is missing
or arrives twice. A blocked direction holds frames back until it is healed. All random numbers come
from one Random, and all iteration is over dicts in the order of insertion. The same seed therefore
gives the same run.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from quorate.quorum.seams import Accept, Address, Random, Wire
from tests.sim.world.connection import SimConnection
from tests.sim.world.host import Host
from tests.sim.world.loop import SimLoop

if TYPE_CHECKING:
    from tests.sim.world.link import SimLink

LAST_FIXED_PORT = 29_999


@dataclass(frozen=True, slots=True, kw_only=True)
class PathSettings:
    """The latency, bandwidth and losses of one direction."""

    min_latency_ms: float = 0.1
    max_latency_ms: float = 0.5
    bytes_per_ms: float = 1e6
    delay_probability: float = 0.0  # a frame is lost once and sent again
    delay_ms: float = 200.0
    break_probability: float = 0.0  # the link is reset, and does not deliver the frame
    # TCP's longest wait after a block until it resends, as a share of the block's duration
    retransmission_backoff: float = 0.0


@dataclass(slots=True)
class Path:
    """One direction between two hosts. `usual` are its settings without a fault."""

    usual: PathSettings
    settings: PathSettings
    blocked: bool = False
    blocked_at_s: float = 0.0
    refused: bool = False  # connections are refused although a process listens
    hindered: int = 0  # frames and connections that were held back, delayed or refused
    unread: bool = False  # the receiving process does not read
    kept: int = 0  # how often arrived data was not read
    kernel_bytes: int = 0  # the size of a stream's kernel buffer; 0: the usual size
    squeezed: int = 0  # writes that the kernel took in part only, or not at all


@dataclass(slots=True)
class SimListener:
    network: SimNetwork
    host: Host
    address: Address
    accept: Mapping[Wire, Accept]
    max_frame_bytes: int
    links: dict[SimConnection, None] = field(default_factory=dict)

    async def close(self) -> None:
        self.network.listeners.pop(self.address, None)
        for link in list(self.links):
            link.abort()


class SimNetwork:
    def __init__(self, loop: SimLoop, random: Random, settings: PathSettings | None = None) -> None:
        self.loop = loop
        self.random = random
        self.settings = settings or PathSettings()
        self.listeners: dict[Address, SimListener] = {}
        self.links: dict[SimConnection, None] = {}
        self.streams = False
        """True if new links are streams of bytes below the production frame links (`stream.py`)."""
        self.identities = False
        """True if links between nodes have the identity that the other process has proved."""
        self.alter: Callable[[SimLink, bytes], bytes] | None = None
        """Returns the frame that a process reads in place of the one that arrived."""
        self.pieces = 0
        """The number of writes to streams that did not arrive in one piece."""
        self.usual: Callable[[str, str], PathSettings] = lambda source, target: self.settings
        """Returns the settings of a direction without a fault."""
        self._hosts: dict[str, Host] = {}
        self._paths: dict[tuple[str, str], Path] = {}
        self._last_port = LAST_FIXED_PORT

    def boot(self, name: str) -> Host:
        """Start a new process of that name, on a machine that is up. The previous process must be
        dead."""
        before = self._hosts.get(name)
        assert before is None or before.dead, f"{name} runs already"
        host = self._hosts[name] = Host(self.loop, name)
        return host

    def crash(self, host: Host, *, power_loss: bool = False) -> None:
        """End the process. Its kernel closes its connections. After a power loss, the kernel sends
        nothing: a peer learns of the loss when it sends to the machine after the next start."""
        host.kill()
        for address in [a for a, listener in self.listeners.items() if listener.host is host]:
            del self.listeners[address]
        if power_loss:
            self._hosts.pop(host.name)
        for link in self._links_of(host):
            link.die(silently=power_loss)

    def is_up(self, name: str) -> bool:
        """Return True if the machine answers, even if no process listens."""
        return name in self._hosts

    def path(self, source: str, target: str) -> Path:
        path = self._paths.get((source, target))
        if path is None:
            usual = self.usual(source, target)
            path = self._paths[source, target] = Path(usual, usual)
        return path

    def arrival_s(self, path: Path, size_bytes: int) -> float:
        settings = path.settings
        path.hindered += settings is not path.usual
        spread_ms = settings.max_latency_ms - settings.min_latency_ms
        delay_ms = settings.min_latency_ms + spread_ms * self.random.random()
        delay_ms += size_bytes / settings.bytes_per_ms
        if settings.delay_probability and self.random.random() < settings.delay_probability:
            delay_ms += settings.delay_ms
        return self.loop.time() + delay_ms / 1000

    def breaks(self, path: Path) -> bool:
        probability = path.settings.break_probability
        return probability > 0 and self.random.random() < probability

    def block(self, source: str, target: str) -> None:
        """Let no data of `source` reach `target` until `unblock`. The other direction stays as it
        is."""
        path = self.path(source, target)
        if not path.blocked:
            path.blocked, path.blocked_at_s = True, self.loop.time()

    def unblock(self, source: str, target: str) -> None:
        path = self.path(source, target)
        path.blocked = False
        backoff_s = path.settings.retransmission_backoff * (self.loop.time() - path.blocked_at_s)
        for link in list(self.links):
            if link.host.name == source and link.peer.host == target:
                link.send_held(backoff_s * self.random.random())

    def partition(self, group: Iterable[str], others: Iterable[str]) -> None:
        others = list(others)
        for name in group:
            for other in others:
                self.block(name, other)
                self.block(other, name)

    def isolate(self, name: str) -> None:
        self.partition([name], [other for other in self._hosts if other != name])

    def refuse(self, source: str, target: str) -> None:
        """Let a live peer refuse connections, as a full backlog or a firewall does. This is a false
        hint that its process has ended."""
        self.path(source, target).refused = True

    def leave_unread(self, source: str, target: str) -> None:
        """The process of `target` reads nothing from `source` until `read_again`."""
        self.path(source, target).unread = True

    def read_again(self, source: str, target: str) -> None:
        self.path(source, target).unread = False
        for link in list(self.links):
            if link.host.name == target and link.peer.host == source:
                link.host.call_soon(link.read)

    def shape(self, source: str, target: str, **changes: float) -> None:
        """Change some settings of one direction."""
        path = self.path(source, target)
        path.settings = replace(path.settings, **changes)

    def heal(self) -> None:
        """Give every path its usual settings, and send the data that was held back."""
        blocked = [pair for pair, path in self._paths.items() if path.blocked]
        for path in self._paths.values():
            path.settings, path.refused = path.usual, False
        for source, target in blocked:
            self.unblock(source, target)

    def break_links(self, name: str, other: str) -> int:
        """Reset every open link between two hosts, and notify both ends. Return the number of link
        ends."""
        broken = [
            link
            for link in self.links
            if (link.host.name, link.peer.host) in ((name, other), (other, name))
        ]
        for link in broken:
            link.reset(ConnectionResetError("broken by the simulation"))
        return len(broken)

    def listen(
        self, host: Host, address: Address, accept: Mapping[Wire, Accept], max_frame_bytes: int
    ) -> SimListener:
        bound = Address(host.name, address.port or self.free_port())
        if bound in self.listeners:
            raise OSError(errno.EADDRINUSE, f"{bound} is in use")
        listener = SimListener(self, host, bound, accept, max_frame_bytes)
        self.listeners[bound] = listener
        return listener

    def free_port(self) -> int:
        self._last_port += 1
        return self._last_port

    def _links_of(self, host: Host) -> list[SimConnection]:
        return [link for link in self.links if link.host is host]
