"""The Transport seam of one simulated host."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from quorate.quorum.seams import (
    Accept,
    Address,
    DialTls,
    Link,
    LinkHandler,
    Listener,
    PeerIdentity,
    PeerRefused,
    PeerUnreachable,
    Tls,
    Wire,
)
from tests.sim.world.host import Host
from tests.sim.world.link import SimLink
from tests.sim.world.network import SimListener, SimNetwork
from tests.sim.world.stream import SimStream, link_over

logger = logging.getLogger(__name__)


class SimTransport:
    def __init__(self, network: SimNetwork, host: Host) -> None:
        self._network = network
        self._host = host

    async def listen(
        self,
        address: Address,
        accept: Mapping[Wire, Accept],
        *,
        max_frame_bytes: int,
        tls: Tls | None = None,
    ) -> Listener:
        assert tls is None, "the simulation does no TLS"
        return self._network.listen(self._host, address, accept, max_frame_bytes)

    async def connect(
        self,
        address: Address,
        wire: Wire,
        accept: Accept,
        *,
        max_frame_bytes: int,
        timeout_ms: int,
        tls: DialTls | None = None,
    ) -> Link:
        assert tls is None, "the simulation does no TLS"
        attempt = _Attempt(self._network, self._host, address, wire, accept, max_frame_bytes)
        return await attempt.made(timeout_ms)


def identified(handler: LinkHandler, identity: PeerIdentity) -> None:
    """Report the identity of the peer of a link, if it has proved one."""
    on_identified = getattr(handler, "on_identified", None)
    if on_identified is not None and identity.verified:
        on_identified(identity)


class _Attempt:
    """One attempt to connect: the way to the peer, its acceptance, and the way back."""

    def __init__(
        self,
        network: SimNetwork,
        host: Host,
        address: Address,
        wire: Wire,
        accept: Accept,
        max_frame_bytes: int,
    ) -> None:
        self._network = network
        self._host = host
        self._address = address
        self._wire = wire
        self._accept = accept
        self._max_frame_bytes = max_frame_bytes
        self._there = network.path(host.name, address.host)
        self._back = network.path(address.host, host.name)
        self._made = network.loop.create_future()

    async def made(self, timeout_ms: int) -> Link:
        loop = self._network.loop
        timeout = self._host.call_at(loop.time() + timeout_ms / 1000, self._time_out)
        self._there.hindered += self._there.blocked
        if not self._there.blocked:
            loop.call_at(self._network.arrival_s(self._there, 0), self._knock)
        try:
            link: Link = await self._made
            return link
        finally:
            timeout.cancel()

    def _knock(self) -> None:
        """Reach the peer's kernel, which refuses if no process listens. A pause of the process does
        not prevent a refusal."""
        if not self._network.is_up(self._address.host):
            return
        listener = self._network.listeners.get(self._address)
        if listener is None or self._there.refused:
            self._there.hindered += self._there.refused
            refused = PeerRefused(f"{self._address} refuses connections")
            self._answer(lambda: self._fail(refused))
        else:
            listener.host.call_soon(lambda: self._accepted(listener))

    def _accepted(self, listener: SimListener) -> None:
        if self._wire not in listener.accept:
            logger.warning("%s does not speak %s", listener.address, self._wire.value)
            failure = PeerUnreachable(f"cannot reach {self._address}: closed at once")
            return self._answer(lambda: self._fail(failure))
        if self._host.dead:
            return None
        network = self._network
        client_address = Address(self._host.name, network.free_port())
        if network.streams:
            return self._accepted_stream(listener, client_address)
        server = SimLink(
            network, listener.host, client_address, self._wire, listener.max_frame_bytes, listener
        )
        client = SimLink(network, self._host, self._address, self._wire, self._max_frame_bytes)
        server.join(client)
        if network.identities:
            server.identity, client.identity = self._host.identity, listener.host.identity
        server.handler = listener.accept[self._wire](server)
        identified(server.handler, self._host.identity)
        return self._answer(lambda: self._established(client))

    def _accepted_stream(self, listener: SimListener, client_address: Address) -> None:
        server = SimStream(self._network, listener.host, client_address, listener)
        client = SimStream(self._network, self._host, self._address)
        server.join(client)
        accept = listener.accept[self._wire]
        link_over(server, self._wire, accept, listener.max_frame_bytes, connects=False)
        self._answer(lambda: self._established_stream(client))

    def _established_stream(self, client: SimStream) -> None:
        if self._made.done():
            client.abort()
        elif client.closed:  # a reset overtook the answer
            self._fail(PeerUnreachable(f"cannot reach {self._address}: closed at once"))
        else:
            limit = self._max_frame_bytes
            link = link_over(client, self._wire, self._accept, limit, connects=True)
            self._made.set_result(link)

    def _answer(self, event: Callable[[], None]) -> None:
        self._back.hindered += self._back.blocked
        if not self._back.blocked:
            self._host.call_at(self._network.arrival_s(self._back, 0), event)

    def _established(self, client: SimLink) -> None:
        if self._made.done():
            client.abort()
            return
        if client.closed:  # a reset overtook the answer
            self._fail(PeerUnreachable(f"cannot reach {self._address}: closed at once"))
            return
        handler = self._accept(client)
        identified(handler, client.other.host.identity)
        client.start(handler)
        self._made.set_result(client)

    def _time_out(self) -> None:
        self._fail(PeerUnreachable(f"cannot reach {self._address}: timed out"))

    def _fail(self, error: Exception) -> None:
        if not self._made.done():
            self._made.set_exception(error)
