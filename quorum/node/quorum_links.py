"""A node's connections to the voters: one Connector each, shared by Raft and by a broker's
requests."""

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
    def on_voter_up(self, voter_id: int) -> None: ...

    def on_voter_lost(self, voter_id: int) -> None: ...

    def on_voter_refused(self, voter_id: int) -> None: ...


@dataclass(frozen=True, slots=True)
class _Events:
    """ConnectorEvents of one voter."""

    voter_id: int
    listener: LinksListener

    def on_up(self, channel: Channel) -> None:
        self.listener.on_voter_up(self.voter_id)

    def on_down(self, channel: Channel) -> None:
        self.listener.on_voter_lost(self.voter_id)

    def on_refused(self) -> None:
        self.listener.on_voter_refused(self.voter_id)


class QuorumLinks:
    """`channel` and `send` work from `start` to `close`."""

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
        """It is reached there from now on. Negative ids are addresses of which nobody knows whose
        they are (controller.quorum.bootstrap.servers)."""
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
        connector = self._connectors.pop(voter_id, None)
        if connector is not None:
            connector.close()

    @property
    def known_ids(self) -> list[int]:
        return list(self._connectors)

    def start(self) -> None:
        self._running = True
        for connector in self._connectors.values():
            connector.start()

    def close(self) -> None:
        self._running = False
        for connector in self._connectors.values():
            connector.close()

    def channel(self, voter_id: int) -> Channel | None:
        connector = self._connectors.get(voter_id)
        return None if connector is None else connector.channel

    def renew(self) -> None:
        """Every link is made anew, at once: this node says other things in its handshake now."""
        for connector in list(self._connectors.values()):
            if connector.channel is None:
                connector.retry_now()
            else:
                connector.channel.abort()

    def sign_of_life(self, voter_id: int) -> None:
        """That node reached us: do not wait out the backoff to reach it."""
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
        """VoterLinks: a voter that is not connected does not answer."""
        channel = self.channel(voter_id)
        if channel is None:
            self._clock.call_soon(lambda: done(None))
            return

        def answered(answer: Any) -> None:
            done(None if isinstance(answer, RpcFailure) else answer)

        channel.request(request, timeout_ms, answered)
