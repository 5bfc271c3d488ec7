"""The parts of a Kafka port that its connections share: routes, settings, quotas and the
boundary."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.protocol.apis import APIS, Api
from quorate.quorum.rpc.kafka.boundary import Boundary
from quorate.quorum.rpc.kafka.connection_quotas import ConnectionQuotas
from quorate.quorum.rpc.kafka.context import RequestConnection, RequestContext
from quorate.quorum.rpc.kafka.node_resources import NodeResources
from quorate.quorum.rpc.kafka.request_times import RequestTimes
from quorate.quorum.seams import Clock

Handler = Callable[[RequestContext, Any], IncrementalWork[None] | None]
"""Takes the context and the decoded request. The server runs the steps that it returns."""
RawHandler = Callable[[RequestContext, memoryview], IncrementalWork[None] | None]
"""Takes the context and the body after the header. The server runs the steps that it returns."""

NewContext = Callable[[RequestConnection, int, int, int], RequestContext]
"""Takes the connection, the API key, the version and the correlation id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """The bounds of each connection of a port. A connection that reaches one of them is not read,
    but a request above `max_request_bytes` closes it."""

    max_request_bytes: int = 100 << 20
    max_in_flight: int = 256
    """Requests of one connection that have no response yet."""
    max_in_flight_bytes: int = 64 << 20
    max_ready_bytes: int = 64 << 10
    """Responses that wait for the response of an earlier request, or that are being built."""
    max_pending_bytes: int = 1 << 20
    """Bytes of responses that the client may leave unread, on links that do not report this. Links
    over TCP report it above 64 KiB, the default of asyncio."""
    drain_check_ms: int = 10
    """The interval in which such a link is checked."""


@dataclass(slots=True)
class Route:
    """The handler of an API, and counters of its use. A `raw` handler takes the encoded body.

    `failures` counts requests that failed with an exception that no handler expected. `times` has
    the requests that were answered."""

    api: Api
    handle: Handler | RawHandler
    raw: bool
    requests: int = 0
    request_bytes: int = 0
    failures: int = 0
    times: RequestTimes = field(default_factory=RequestTimes)

    def count(self, request_bytes: int) -> None:
        """Count a request, whose frame has this size."""
        self.requests += 1
        self.request_bytes += request_bytes


class ServerState:
    """The state of one Kafka port that all of its connections use. The event loop owns it."""

    def __init__(
        self,
        handlers: Mapping[int, Handler],
        clock: Clock,
        *,
        raw_handlers: Mapping[int, RawHandler] | None = None,
        settings: ServerSettings | None = None,
        quotas: ConnectionQuotas | None = None,
        resources: NodeResources | None = None,
    ) -> None:
        """Create the routes of `handlers` and `raw_handlers`, by API key.

        Ports with common limits share `quotas`. All ports of a node share `resources`."""
        self.routes = {key: Route(APIS[key], each, False) for key, each in handlers.items()}
        for key, each in (raw_handlers or {}).items():
            self.routes[key] = Route(APIS[key], each, True)
        self.clock = clock
        self.settings = settings or ServerSettings()
        self.quotas = ConnectionQuotas(clock) if quotas is None else quotas
        self.resources = NodeResources(clock) if resources is None else resources
        self.boundary = Boundary(clock, self.resources.refusals)
        self.new_context: NewContext = RequestContext
        """Creates the context of each request. Metering (`metering.py`) replaces it."""

    @property
    def api_keys(self) -> tuple[int, ...]:
        """Return the keys of the APIs that this port serves, in ascending order."""
        return tuple(sorted(self.routes))
