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
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from quorate.quorum.rpc.kafka import headers
from quorate.quorum.rpc.kafka.apis import APIS, Api, ApiKey
from quorate.quorum.rpc.kafka.boundary import Boundary
from quorate.quorum.rpc.kafka.codec import reader
from quorate.quorum.rpc.kafka.connections import Connections
from quorate.quorum.rpc.kafka.context import RequestContext
from quorate.quorum.rpc.kafka.errors import ErrorCode
from quorate.quorum.rpc.kafka.schemas.api_versions import ApiVersion, ApiVersionsResponse
from quorate.quorum.rpc.kafka.varint import DecodeError
from quorate.quorum.rpc.kafka.wire import Message
from quorate.quorum.rpc.kafka.work import Work
from quorate.quorum.seams import Address, Clock, Link
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
CLOSE_TIMEOUT_MS = 5000

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
    max_pending_bytes: int = 64 << 20
    """Responses that the client has not taken off the wire."""
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
        connections: Connections | None = None,
        work: Work | None = None,
    ) -> None:
        """Ports that are bounded together share `connections`; all ports of a node share `work`."""
        self.routes = {key: Route(APIS[key], each, False) for key, each in handlers.items()}
        for key, each in (raw_handlers or {}).items():
            self.routes[key] = Route(APIS[key], each, True)
        self.clock = clock
        self.settings = settings or ServerSettings()
        self.connections = Connections(clock) if connections is None else connections
        self.work = Work(clock) if work is None else work
        self.boundary = Boundary(clock)

    @property
    def api_keys(self) -> tuple[int, ...]:
        return tuple(sorted(self.routes))

    def accept(self, link: Link) -> Connection:
        connection = Connection(self, link)
        self.connections.opened(connection)
        return connection


class Connection:
    """One client: its queue of requests, oldest first. Handlers keep state of theirs in
    `client_software` (from ApiVersions) and `asked_metadata`."""

    __slots__ = (
        "_checking",
        "_held",
        "_in_flight_bytes",
        "_paused",
        "_queue",
        "_queued",
        "_refused",
        "asked_metadata",
        "client_software",
        "clock",
        "closed",
        "link",
        "server",
        "turn",
        "used_ms",
    )

    def __init__(self, server: KafkaServer, link: Link) -> None:
        self.server = server
        self.link = link
        self.clock = server.clock
        self.closed = False
        self.turn = server.work.turn()
        self.client_software: tuple[str, str] | None = None
        self.asked_metadata = False
        self._queue: deque[RequestContext] = deque()
        self._queued = 0  # behind the first
        self._in_flight_bytes = 0
        self._paused = False
        self._held = False
        self._checking = False
        self._refused = False
        self.used_ms = self.clock.now_ms()

    @property
    def peer(self) -> Address:
        return self.link.peer

    @property
    def waits(self) -> bool:
        return bool(self._queue)

    def on_frame(self, frame: memoryview) -> None:
        if self._refused:
            return
        if len(frame) > self.server.settings.max_request_bytes:
            most = self.server.settings.max_request_bytes
            self.refuse(f"malformed request: {len(frame)} bytes, allowed are {most}")
            return
        try:
            context = self._context(frame)
        except DecodeError as error:
            self.refuse(f"malformed request: {error}")
            return
        if context is not None:
            try:
                self._dispatch(context, frame)
            except Exception as error:
                context.raised(error)

    def on_closed(self, error: Exception | None) -> None:
        self.closed = True
        self._queue.clear()
        self._count_queued()
        self.server.work.end(self.turn)
        self.server.connections.left(self)

    def refuse(self, reason: str) -> None:
        """Close the connection; what is answered already still leaves."""
        self.turn_away(reason, logging.WARNING)

    def turn_away(self, reason: str, level: int) -> None:
        if not self.closed and not self._refused:
            logger.log(level, "closing the connection from %s: %s", self.link.peer, reason)
            self._refused = True
            self.server.work.end(self.turn)
            self.server.connections.left(self)
            self.link.close()
            if self.link.pending_bytes:
                self.clock.call_later(CLOSE_TIMEOUT_MS, self.link.abort)

    def hold(self, delay_ms: int) -> None:
        self._held = True
        self.clock.call_later(delay_ms, self._release)
        self.bound()

    def answered(self) -> None:
        """Sends whatever is ready at the head of the queue."""
        self.used_ms = self.clock.now_ms()
        queue = self._queue
        while queue and (parts := queue[0].parts) is not None:
            context = queue.popleft()
            route = self.server.routes[context.api_key]
            route.answers += 1
            route.total_ms += self.used_ms - context.received_ms
            self._in_flight_bytes -= context.request_bytes
            if parts and not self._refused:
                self.link.send(*parts)
        self.bound()

    def _context(self, frame: memoryview) -> RequestContext | None:
        """Read the fixed part of the header. Return None if the request is not for a handler."""
        api_key, version, correlation_id = headers.read_fixed(frame)
        route = self.server.routes.get(api_key)
        if route is None:
            self.refuse(f"API key {api_key} is not served here")
            return None
        if not route.api.serves(version):
            self._unsupported(route.api, version, correlation_id)
            return None
        route.requests += 1
        context = RequestContext(self, api_key, version, correlation_id)
        context.request_bytes = len(frame)
        context.frame = frame
        self.used_ms = context.received_ms
        return context

    def _dispatch(self, context: RequestContext, frame: memoryview) -> None:
        route, version = self.server.routes[context.api_key], context.version
        api = route.api
        flexible = version >= api.flexible_since
        context.client_id, start = headers.read_client_id(frame, 2 if flexible else 1)
        request: Any = frame[start:]
        if not route.raw:
            request, _ = reader(api.request, version, flexible)(request, 0)
        self._enqueue(context)
        steps = route.handle(context, request)
        if steps is not None:
            self.server.work.begin(context, steps)
            if self.turn.tasks:
                self.bound()

    def _unsupported(self, api: Api, version: int, correlation_id: int) -> None:
        if api.key != ApiKey.API_VERSIONS:
            self.refuse(
                f"{api.name} version {version} is not supported, "
                f"only {api.min_version} to {api.max_version}"
            )
            return
        # Of a version from the future only the first bytes are understood. Version 0 is what every
        # client can read; the one entry tells it what to ask with (KIP-511).
        context = RequestContext(self, api.key, 0, correlation_id)
        self._enqueue(context)
        context.respond(unsupported_api_versions(api))

    def _enqueue(self, context: RequestContext) -> None:
        self._queue.append(context)
        self._in_flight_bytes += context.request_bytes
        self.bound()

    def _count_queued(self) -> None:
        queued = max(0, len(self._queue) - 1)
        change, self._queued = queued - self._queued, queued
        if change:
            self.server.connections.queued(change)

    def bound(self) -> None:
        """Stops or starts reading, as the bounds say."""
        self._count_queued()
        settings, connections = self.server.settings, self.server.connections
        crowded = bool(self._queue) and connections.full
        undrained = self.link.pending_bytes > settings.max_pending_bytes
        full = (
            undrained
            or crowded
            or self._held
            or bool(self.turn.tasks)
            or len(self._queue) >= settings.max_in_flight
            or self._in_flight_bytes >= settings.max_in_flight_bytes
        )
        if full != self._paused:
            self._paused = full
            if full:
                self.link.pause_reading()
            else:
                self.link.resume_reading()
        if crowded:
            connections.held(self)
        # Nothing tells when the client has taken its bytes, so that is looked at now and then.
        if undrained and not self._checking and not self.closed:
            self._checking = True
            self.clock.call_later(settings.drain_check_ms, self._check_drained)

    def _check_drained(self) -> None:
        self._checking = False
        if not self.closed:
            self.bound()

    def _release(self) -> None:
        self._held = False
        if not self.closed:
            self.bound()


def unsupported_api_versions(api: Api) -> Message:
    return ApiVersionsResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION,
        api_keys=(
            ApiVersion(
                api_key=api.key, min_version=api.advertised_min, max_version=api.max_version
            ),
        ),
    )
