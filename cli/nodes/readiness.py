"""The check that a cluster is ready: the Metadata of every broker lists all brokers.

Metadata lists only unfenced brokers. The check connects as a client does, with TLS and SASL if the
brokers demand them."""

from __future__ import annotations

from collections.abc import Sequence

from quorate.cli.client.client_properties import ClientSecurity
from quorate.cli.client.connection import Connection, ConnectionLost
from quorate.quorum.protocol.schemas.metadata import MetadataRequest, MetadataResponse

POLL_TIMEOUT_S = 2.0
"""The bound of a connection attempt, and of each wait for a response."""

Address = tuple[str, int]


class Readiness:
    """A check that is repeated until all brokers are ready.

    A broker that was ready is not asked again.

    One thread at a time calls `poll`. Each call keeps the connections to the brokers that are not
    ready."""

    def __init__(self, brokers: dict[int, Address], security: ClientSecurity) -> None:
        """Create a check of `brokers`, which connects to them with `security`."""
        self._security = security
        self._expected = frozenset(brokers)
        self._open = dict(brokers)
        self._connections: dict[int, Connection] = {}

    def poll(self) -> bool:
        """Ask each broker that was not ready yet, and return True if all are ready now.

        The call blocks until all of them have answered or failed. Each wait for a broker is bounded
        by POLL_TIMEOUT_S. Raise Refused if a port answers and does not speak Kafka's protocol, or
        if TLS or the login fails."""
        for node_id, address in list(self._open.items()):
            try:
                if self._unfenced(node_id, address) >= self._expected:
                    del self._open[node_id]
                    self._connections.pop(node_id).close()
            except ConnectionLost:
                self._connections.pop(node_id, None)
        return not self._open

    def waits_for(self) -> Sequence[int]:
        """Return the ids of the brokers that were not ready yet, in ascending order."""
        return sorted(self._open)

    def _unfenced(self, node_id: int, address: Address) -> frozenset[int]:
        connection = self._connections.get(node_id)
        if connection is None:
            connection = Connection(
                *address,
                timeout_s=POLL_TIMEOUT_S,
                client_id="quorate-up",
                tls=self._security.tls,
                login=self._security.login,
            )
            self._connections[node_id] = connection
        answer = connection.call(MetadataRequest(topics=()), MetadataResponse, POLL_TIMEOUT_S)
        return frozenset(node.node_id for node in answer.brokers)
