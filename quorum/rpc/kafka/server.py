"""Kafka's protocol on links: requests to handlers, responses back in the order of the requests.

Handlers answer through their `RequestContext`, immediately or later. Each request has a slot in its
connection's queue. Responses leave as soon as they are ready at the head of the queue. There is no
task and no future per request.

- A handler returns None, or steps (`quorum/steps.py`), which `work.py` runs in slices. While a
  connection has such work, the server does not read it.
- Every exception of a request ends at the boundary (`boundary.py`). Only exceptions about the
  node's own state pass.
- A request of an unknown API, an unsupported version or with malformed bytes closes its connection
  with one log line, as in Kafka; only ApiVersions is answered in version 0 (KIP-511).
- Bounded: requests and bytes in flight per connection (then it is not read), and bytes that the
  client does not take (then it is not read until it does). What all connections of a node may do
  together, `connections.py` bounds.
- A refused connection still gets its earlier responses, for CLOSE_TIMEOUT_MS.
"""

from __future__ import annotations

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
    """`accept` is the Accept of `Wire.KAFKA` for a listener; the handlers decide what is served."""

    def accept(self, link: Link) -> Connection:
        connection = Connection(self, link)
        self.quotas.add(connection)
        return connection
