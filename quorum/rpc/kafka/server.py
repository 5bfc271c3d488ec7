"""The server of one Kafka port: requests to handlers, responses back in the order of the requests.

A handler answers through its RequestContext, immediately or later. Each request has a place in the
queue of its connection. Responses leave as soon as they are ready at the head of the queue. There
is no task and no future per request.

- A handler returns None, or steps (`quorum/incremental_work.py`) that `request_scheduler.py` runs
  in slices. While a connection has such work, the server does not read it.
- Every exception of a request ends at the boundary (`boundary.py`). Only exceptions about the
  node's own state pass.
- A request of an unknown API, of an unsupported version or with malformed bytes closes its
  connection with one log line, as in Kafka. Only an ApiVersions request of an unsupported version
  gets a response, in version 0 (KIP-511).
- Each connection has bounds of its requests and bytes in flight, and of the bytes that its client
  does not take. When one is reached, the connection is not read. `connection_quotas.py` bounds the
  connections of all ports that share its limits together.
- A refused connection still gets the responses that were sent to its link, for CLOSE_TIMEOUT_MS.
  Responses in its queue are discarded.
"""

from __future__ import annotations

from collections.abc import Callable

from quorate.quorum.rpc.kafka.connection import Connection
from quorate.quorum.rpc.kafka.context import RequestContext
from quorate.quorum.rpc.kafka.server_state import (
    Handler,
    RawHandler,
    Route,
    ServerSettings,
    ServerState,
)
from quorate.quorum.seams import Link

__all__ = [
    "Connection",
    "Handler",
    "KafkaServer",
    "RawHandler",
    "RequestContext",
    "Route",
    "ServerSettings",
]


class KafkaServer(ServerState):
    """The server of one port. Its `accept` is passed to `Transport.listen` for `Wire.KAFKA`."""

    new_connection: Callable[[ServerState, Link], Connection] = Connection
    """Creates the connection of each link. A listener with SASL replaces it."""

    def accept(self, link: Link) -> Connection:
        """Return the Connection that handles a new link. The quotas may have closed it already."""
        connection = self.new_connection(self, link)
        self.quotas.add(connection)
        return connection
