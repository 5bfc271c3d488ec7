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

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from quorate.quorum.protocol.apis import APIS, Api
from quorate.quorum.rpc.kafka.boundary import Boundary
from quorate.quorum.rpc.kafka.connection import Connection
from quorate.quorum.rpc.kafka.connection_quotas import ConnectionQuotas
from quorate.quorum.rpc.kafka.context import RequestContext
from quorate.quorum.rpc.kafka.node_resources import NodeResources
from quorate.quorum.seams import Clock, Link
from quorate.quorum.steps import Steps

__all__ = [
    "Connection",
    "Handler",
    "KafkaServer",
    "RawHandler",
    "RequestContext",
    "Route",
    "ServerSettings",
]

logger = logging.getLogger("quorate.kafka")

Handler = Callable[[RequestContext, Any], Steps[None] | None]
"""Takes the context and the decoded request. The server runs the steps that it returns."""
RawHandler = Callable[[RequestContext, memoryview], Steps[None] | None]
"""Takes the context and the body after the header. The server runs the steps that it returns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    max_request_bytes: int = 100 << 20
    max_in_flight: int = 256
    """Requests of one connection that are not answered yet."""
    max_in_flight_bytes: int = 64 << 20
    max_ready_bytes: int = 64 << 10
    """Responses that wait for the response of an earlier request."""
    max_pending_bytes: int = 1 << 20
    """Responses that the client has not taken off the wire, on links that do not report when it
    does. Links over TCP do, above 64 KiB (asyncio's default)."""
    drain_check_ms: int = 10


@dataclass(slots=True)
class Route:
    """The handler of an API, and counters of its use. `failures` counts requests that failed with
    an exception that no handler expected."""

    api: Api
    handle: Handler | RawHandler
    raw: bool
    requests: int = 0
    answers: int = 0
    total_ms: int = 0
    failures: int = 0


class KafkaServer:
    """`accept` is the Accept of `Wire.KAFKA` for a listener; the handlers decide what is served."""

    def __init__(
        self,
        handlers: Mapping[int, Handler],
        clock: Clock,
        *,
        raw_handlers: Mapping[int, RawHandler] | None = None,
        settings: ServerSettings | None = None,
        connections: ConnectionQuotas | None = None,
        resources: NodeResources | None = None,
    ) -> None:
        """Ports that are bounded together share `connections`. All ports of a node share
        `resources`."""
        self.routes = {key: Route(APIS[key], each, False) for key, each in handlers.items()}
        for key, each in (raw_handlers or {}).items():
            self.routes[key] = Route(APIS[key], each, True)
        self.clock = clock
        self.settings = settings or ServerSettings()
        self.connections = ConnectionQuotas(clock) if connections is None else connections
        self.resources = NodeResources(clock) if resources is None else resources
        self.boundary = Boundary(clock)

    @property
    def api_keys(self) -> tuple[int, ...]:
        return tuple(sorted(self.routes))

    def accept(self, link: Link) -> Connection:
        connection = Connection(self, link)
        self.connections.opened(connection)
        return connection
