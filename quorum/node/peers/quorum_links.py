"""The links of a node to the voters and the bootstrap servers.

Each voter has one connector, which reconnects. Raft and the requests of a broker share its link.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from quorate.quorum.ids import NO_NODE
from quorate.quorum.raft.messages import Request, Response
from quorate.quorum.rpc.channel import Channel, RpcFailure
from quorate.quorum.rpc.connector import Connector, ConnectorSettings
from quorate.quorum.seams import Address, Seams


class LinksListener(Protocol):
    """The owner of the links, called on the event loop. A negative id is that of a bootstrap
    server."""

    def on_voter_up(self, voter_id: int) -> None:
        """The handshake with this voter is complete."""

    def on_voter_lost(self, voter_id: int) -> None:
        """The link to this voter has closed."""

    def on_voter_refused(self, voter_id: int) -> None:
        """The voter's host refused a connection: no process listens at the address."""


@dataclass(frozen=True, slots=True)
class _Events:
    """The events of one connector (ConnectorEvents), passed on with the voter's id."""

    voter_id: int
    listener: LinksListener

    def on_up(self, channel: Channel) -> None:
        self.listener.on_voter_up(self.voter_id)

    def on_down(self, channel: Channel) -> None:
        self.listener.on_voter_lost(self.voter_id)

    def on_refused(self) -> None:
        self.listener.on_voter_refused(self.voter_id)


class QuorumLinks:
    """The connectors by voter id. Owned by the node's event loop.

    A negative id stands for a bootstrap server, whose node id is unknown. Links exist from `start`
    to `close`."""

    def __init__(
        self,
        seams: Seams,
        voters: Mapping[int, Address],
        settings: ConnectorSettings,
        listener: LinksListener,
    ) -> None:
        self._clock = seams.clock
        self._seams = seams
        self._settings = settings
        self._listener = listener
        self._running = False
        self._connectors: dict[int, Connector] = {}
        for voter_id, address in sorted(voters.items()):
            self.know(voter_id, address)

    def know(self, voter_id: int, address: Address) -> None:
        """Connect to this voter at `address` from now on, or from `start` on.

        Do nothing if this is the known address. A link to another address is closed, which the
        listener sees as a lost voter. The handshake fails if another node listens there."""
        known = self._connectors.get(voter_id)
        if known is not None:
            if known.address == address:
                return
            known.close()
        connector = self._connectors[voter_id] = Connector(
            address,
            self._seams.transport,
            self._seams.random,
            self._settings,
            _Events(voter_id, self._listener),
            expected_id=max(voter_id, NO_NODE),
        )
        if self._running:
            connector.start()

    def forget(self, voter_id: int) -> None:
        """Close the link to this voter and do not reconnect. Do nothing if the voter is unknown."""
        connector = self._connectors.pop(voter_id, None)
        if connector is not None:
            connector.close()

    @property
    def known_ids(self) -> list[int]:
        """Return the ids of all connectors, in the order in which they became known."""
        return list(self._connectors)

    def start(self) -> None:
        """Connect to all known voters."""
        self._running = True
        for connector in self._connectors.values():
            connector.start()

    def close(self) -> None:
        """Close all links and do not reconnect."""
        self._running = False
        for connector in self._connectors.values():
            connector.close()

    def channel(self, voter_id: int) -> Channel | None:
        """Return the channel to this voter, or None if it is not connected."""
        connector = self._connectors.get(voter_id)
        return None if connector is None else connector.channel

    def failure_at(self, address: Address) -> str:
        """Return the reason why the last attempt to connect to an address failed, or an empty
        string if none failed or there is a link."""
        found = (each.failure for each in self._connectors.values() if each.address == address)
        return next(found, "")

    def renew(self) -> None:
        """Close and reconnect all links, because the handshake of this node has changed.

        Connectors without a link end their backoff. A link that was up only briefly reconnects
        after a backoff."""
        for connector in list(self._connectors.values()):
            if connector.channel is None:
                connector.retry_now()
            else:
                connector.channel.abort()

    def sign_of_life(self, voter_id: int) -> None:
        """Connect to this voter without the rest of a backoff, because it has connected to this
        node. Do nothing if it is connected or unknown."""
        connector = self._connectors.get(voter_id)
        if connector is not None and connector.channel is None:
            connector.retry_now()

    def send(
        self,
        voter_id: int,
        request: Request,
        timeout_ms: int,
        done: Callable[[Response | None], None],
    ) -> None:
        """Send a request of Raft (`VoterLinks.send`). `done` gets None if the voter is not
        connected, does not answer in time, or its link closes."""
        channel = self.channel(voter_id)
        if channel is None:
            self._clock.call_soon(lambda: done(None))
            return

        def answered(answer: Any) -> None:
            done(None if isinstance(answer, RpcFailure) else answer)

        channel.request(request, timeout_ms, answered)
