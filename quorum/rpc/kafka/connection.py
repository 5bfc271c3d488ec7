"""One connection of a Kafka port: its queue of requests, and the bounds under which it is read.

The server reads a connection unless one of its bounds is reached (`update_reading`): the number or
bytes of its requests in flight, the bytes of its responses, or a budget of the node. The server
dispatches requests in the order in which they arrive, and sends responses in the same order.
`idle_connections.py` closes a connection that is not used.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import Any

from quorate.quorum.clipped import shown
from quorate.quorum.histogram import US_PER_MS
from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.principal import ANONYMOUS
from quorate.quorum.protocol import headers
from quorate.quorum.protocol.apis import Api, ApiKey
from quorate.quorum.protocol.codec import decode_steps, reader
from quorate.quorum.protocol.varint import DecodeError
from quorate.quorum.rpc.budget import SMALL_BYTES
from quorate.quorum.rpc.kafka.connection_quotas import ALWAYS_TAKEN
from quorate.quorum.rpc.kafka.context import ELEMENT_BYTES, NO_FRAME, RequestContext
from quorate.quorum.rpc.kafka.reading_pause import ReadingPause
from quorate.quorum.rpc.kafka.server_state import Route, ServerState
from quorate.quorum.rpc.kafka.unsupported_version import unsupported, unsupported_api_versions
from quorate.quorum.seams import Address, Buffer, Link, PeerIdentity

logger = logging.getLogger("quorate.kafka")
CLOSE_TIMEOUT_MS = 5000
"""Time in which a client must read the sent responses before a closed connection is aborted."""
SLICED_ABOVE_BYTES = 16 << 10
"""Larger requests are decoded in steps, unless their handler is raw (`Route.raw`)."""


class Connection:
    """The connection of one client, with its queue of requests, oldest first. It is the LinkHandler
    of its link.

    The event loop owns it. `asked_metadata` is True after the first Metadata request, whose handler
    sets it. No handler sets `client_software`, the name and version of the client's software.
    `principal` is the client's proved identity.

    Invariant: `_in_flight_bytes` is the sum of `request_bytes` over `_queue`."""

    __slots__ = (
        "_buffered_bytes",
        "_checking",
        "_in_flight_bytes",
        "_memory_counted",
        "_pause",
        "_paused",
        "_polls",
        "_queue",
        "_queued",
        "_ready_bytes",
        "_refused",
        "_spoke",
        "_undrained",
        "_used_us",
        "asked_metadata",
        "client_software",
        "clock",
        "closed",
        "link",
        "principal",
        "server",
        "work",
    )

    def __init__(self, server: ServerState, link: Link) -> None:
        """Create the connection of a new link of `server`."""
        self.server = server
        self.link = link
        self.clock = server.clock
        self.closed = False
        self.principal = ANONYMOUS
        self.work = server.resources.scheduler.new_connection_work()
        self.client_software: tuple[str, str] | None = None
        self.asked_metadata = False
        self._queue: deque[RequestContext] = deque()
        self._queued = 0  # requests beyond ALWAYS_TAKEN, as counted by the quotas
        self._in_flight_bytes = 0
        self._memory_counted = False  # True while a budget of the node counts this connection
        self._buffered_bytes = 0  # of a frame that is not finished
        self._ready_bytes = 0  # of responses that are being built, or wait for earlier ones
        self._undrained = False  # True while the client does not take its responses
        self._polls = not getattr(link, "reports_drains", False)
        self._paused = False
        self._pause: ReadingPause | None = None
        self._checking = False
        self._refused = False
        self._spoke = False  # True after the first valid request
        self._used_us = self.clock.now_us()

    @property
    def peer(self) -> Address:
        """Return the address of the client."""
        return self.link.peer

    @property
    def used_ms(self) -> int:
        """Return the monotonic time of the last request or response, or of the start."""
        return self._used_us // US_PER_MS

    @property
    def request_bytes(self) -> int:
        """Return the bytes of requests in flight, decoded or not, and of an unfinished frame."""
        return self._in_flight_bytes + self._buffered_bytes

    @property
    def response_bytes(self) -> int:
        """Return the bytes of responses that are being built, wait, or are not read."""
        return self._ready_bytes + (self.link.pending_bytes if self._undrained else 0)

    @property
    def has_requests(self) -> bool:
        """Return True if a request waits for its response."""
        return bool(self._queue)

    def on_frame(self, frame: memoryview) -> None:
        """Handle one request. Ignore it if the connection was refused. Close the connection if the
        request is malformed or too large, or if this port does not serve its API or version. If its
        handler raises an exception, the request fails with an error code (`boundary.py`).
        Raise only exceptions about the node's own state, which must stop the node."""
        if self._refused:
            return None
        self._buffered_bytes = 0  # the frame is in flight now; the link reports the bytes after it
        if len(frame) > (most := self.server.settings.max_request_bytes):
            reason = f"malformed request: {len(frame)} bytes, more than {most}"
            return self.refuse(reason, frame=frame)
        try:
            context = self._context(frame)
        except DecodeError as error:
            return self.refuse(f"malformed request: {error}", frame=frame)
        if context is not None:
            try:
                self._dispatch(context, frame)
            except Exception as error:
                context.fail_with(error)
        return None

    def on_closed(self, error: Exception | None) -> None:
        """Abandon all requests, and release the memory and CPU of the connection."""
        self.closed = True
        if self._pause is not None:  # a throttle may last for days
            self._pause.cancel()
            self._pause = None
        for context in self._queue:
            context.abandon()
        self._queue.clear()
        self._count_queued(0)
        self._buffered_bytes = self._in_flight_bytes = self._ready_bytes = 0
        self._undrained = False
        self.report_memory()
        self.server.resources.scheduler.end(self.work)
        self.server.quotas.remove(self)

    def on_buffered(self, held_bytes: int) -> None:
        """Record that the link keeps `held_bytes` of an unfinished frame, or few (SMALL_BYTES)."""
        self._buffered_bytes = held_bytes if held_bytes > SMALL_BYTES else 0
        self.report_memory()
        self.update_reading()

    def on_drained(self, drained: bool) -> None:
        """Pause reading if the client reads its responses too slowly (`drained` is False). Resume
        when it has caught up."""
        self._undrained = not drained
        self.report_memory()
        self.update_reading()

    def on_identified(self, identity: PeerIdentity) -> None:
        """Take over the principal of the client's certificate, before its first request."""
        self.principal = identity.principal

    def evict(self) -> None:
        """Close the connection immediately and discard queued responses, because a memory budget of
        the node is used up, or this connection makes no progress under its pressure."""
        self._refused = True
        self.link.abort()

    def refuse(
        self, reason: str, context: RequestContext | None = None, frame: Buffer = NO_FRAME
    ) -> None:
        """Count and log a refused request (`boundary.py`), and close the connection as `close_with`
        does. `context` is None if the header was not read."""
        if not self.closed and not self._refused:
            self.server.boundary.refused(reason, self, context, frame)
            self._end()

    def close_with(self, reason: str, level: int) -> None:
        """Close the connection, and log `reason` at `level`. A second call does nothing.

        The client still receives the responses that were sent to the link, but none of others."""
        if not self.closed and not self._refused:
            logger.log(level, "closing the connection from %s: %s", self.link.peer, reason)
            self._end()

    def _end(self) -> None:
        self._refused = True
        self.server.resources.scheduler.end(self.work)
        self.server.quotas.remove(self)
        self.link.close()
        if self.link.pending_bytes:
            self.clock.call_later(CLOSE_TIMEOUT_MS, self.link.abort)

    def pause_reading_for(self, delay_ms: int) -> None:
        """Pause reading for `delay_ms`, or longer if another pause or bound demands it."""
        if self._pause is not None:
            self._pause.extend(delay_ms)
        elif not self.closed:
            self._pause = ReadingPause(self.clock, delay_ms, self._pause_ended)
            self.update_reading()

    def send_ready(self, answered: RequestContext) -> None:
        """Send all responses that are ready at the head of the queue. The response of `answered`
        has just become ready, and waits if an earlier request has none."""
        self._used_us = now_us = self.clock.now_us()
        queue = self._queue
        if queue and queue[0] is not answered:
            answered.response_waits(now_us)
            ready_bytes = sum(map(len, answered.parts or ()))
            self._ready_bytes += ready_bytes - answered.ready_bytes
            answered.ready_bytes = ready_bytes
        while queue and (parts := queue[0].parts) is not None:
            context = queue.popleft()
            times = self.server.routes[context.api_key].times
            if context.stages is None:
                times.immediate.observe(now_us - context.received_us)
            else:
                times.sent(context.received_us, context.stages, now_us)
            self._in_flight_bytes -= context.request_bytes
            self._ready_bytes -= context.ready_bytes
            if parts and not self._refused:
                self.link.send(*parts)
        if self._memory_counted or self._ready_bytes > SMALL_BYTES:
            self.report_memory()
        if self._paused or self._queued or self._ready_bytes or self._polls:
            self.update_reading()

    def add_response_bytes(self, size_bytes: int) -> None:
        """Count `size_bytes` more of a response. This may close the connection."""
        if not self.closed:
            self._ready_bytes += size_bytes
            self.report_memory()

    def run(self, context: RequestContext, steps: IncrementalWork[None]) -> None:
        """Let the scheduler of the node run `steps`, which answer `context`, in slices."""
        self.server.resources.scheduler.begin(context, steps)

    def report_failure(self, context: RequestContext, error: Exception) -> None:
        """Count and log a request that failed with `error`, which no handler expected."""
        server, route = self.server, self.server.routes[context.api_key]
        route.failures += 1
        client = f"{shown(str(context.principal))} at {self.peer}"
        server.boundary.report(error, route.api.name, context.version, client, context.frame)

    def _context(self, frame: memoryview) -> RequestContext | None:
        """Read the fixed part of the header. Return None if no handler serves the request."""
        api_key, version, correlation_id = headers.read_fixed(frame)
        route = self.server.routes.get(api_key)
        if route is None:
            self.refuse(f"this port does not serve API key {api_key}", frame=frame)
            return None
        if not route.api.serves(version):
            self._unsupported(route.api, version, correlation_id, frame)
            return None
        route.count(len(frame))
        context = self.server.new_context(self, api_key, version, correlation_id)
        context.request_bytes = len(frame)
        context.frame = frame
        self._used_us = context.received_us
        return context

    def _dispatch(self, context: RequestContext, frame: memoryview) -> None:
        self._enqueue(context)  # first, so that any failure can be answered
        route, version = self.server.routes[context.api_key], context.version
        flexible = version >= route.api.flexible_since
        context.client_id, start = headers.read_client_id(frame, 2 if flexible else 1)
        request: Any = frame[start:]
        steps: IncrementalWork[None] | None
        if not route.raw and len(request) > SLICED_ABOVE_BYTES:
            steps = self._handle_large(route, context, request)
        else:
            if not route.raw:
                request, _ = reader(route.api.request, version, flexible)(request, 0)
            if not self._spoke:
                self._speaks()
            steps = route.handle(context, request)
        if steps is not None:
            self.run(context, steps)
            if self.work.tasks:
                self.update_reading()
        elif context.parts is None:
            context.work_ended()

    def _handle_large(
        self, route: Route, context: RequestContext, body: memoryview
    ) -> IncrementalWork[None]:
        """Decode a large request in steps, then run its handler. The memory of its decoded elements
        is counted until the request is answered."""
        context.runs_in_slices()
        request: Any
        request, elements = yield from decode_steps(route.api.request, context.version, body)
        if not self._spoke:
            self._speaks()
        size_bytes = elements * ELEMENT_BYTES
        context.request_bytes += size_bytes
        self._in_flight_bytes += size_bytes
        self.report_memory()
        steps = route.handle(context, request)
        del request  # the handler keeps the parts that it needs
        if steps is not None:
            yield from steps

    def _speaks(self) -> None:
        """Record that the connection has sent a valid request."""
        self._spoke = True
        self.server.quotas.sent_valid_request(self)

    def _unsupported(self, api: Api, version: int, correlation_id: int, frame: Buffer) -> None:
        if api.key != ApiKey.API_VERSIONS:
            return self.refuse(unsupported(api, version), frame=frame)
        # Every client can read version 0, and its one entry names the versions to use (KIP-511).
        context = RequestContext(self, api.key, 0, correlation_id)
        self._enqueue(context)
        return context.respond(unsupported_api_versions(api))

    def _enqueue(self, context: RequestContext) -> None:
        self._queue.append(context)
        self._in_flight_bytes += context.request_bytes
        if large := self._in_flight_bytes > SMALL_BYTES:
            self.report_memory()
        # One small request alone reaches no bound.
        if len(self._queue) > 1 or large or self._memory_counted or self._polls:
            self.update_reading()

    def report_memory(self) -> None:
        """Report the bytes of this connection to the node's budgets. This may close it."""
        memory = self.server.resources.memory
        requests, responses = self.request_bytes, self.response_bytes
        self._memory_counted = requests > SMALL_BYTES or responses > SMALL_BYTES
        memory.requests.set_held(self, requests)
        memory.responses.set_held(self, responses)

    def _count_queued(self, requests: int) -> None:
        queued = requests - ALWAYS_TAKEN if requests > ALWAYS_TAKEN else 0
        if change := queued - self._queued:
            self._queued = queued
            self.server.quotas.add_queued(change)

    def update_reading(self) -> None:
        """Pause or resume reading, as the bounds require."""
        requests = len(self._queue)
        if requests > ALWAYS_TAKEN or self._queued:
            self._count_queued(requests)
        settings, quotas = self.server.settings, self.server.quotas
        crowded = requests >= ALWAYS_TAKEN and quotas.queue_full
        if self._polls:
            self._poll_drained(settings.max_pending_bytes)
        full = (
            self._undrained
            or crowded
            or self._pause is not None
            or self._ready_bytes > settings.max_ready_bytes
            or bool(self.work.tasks)
            or requests >= settings.max_in_flight
            or self._in_flight_bytes >= settings.max_in_flight_bytes
            or (self._memory_counted and self.server.resources.memory.requests.must_wait(self))
        )
        if full != self._paused:
            self._paused = full
            if full:
                self.link.pause_reading()
            else:
                self.link.resume_reading()
        if crowded:
            quotas.wait_for_room(self)

    def _poll_drained(self, max_pending_bytes: int) -> None:
        """Check the unread bytes of a link that does not report when the client takes them."""
        undrained = self.link.pending_bytes > max_pending_bytes
        if undrained != self._undrained:
            self._undrained = undrained
            self.report_memory()
        if undrained and not self._checking and not self.closed:
            self._checking = True
            self.clock.call_later(self.server.settings.drain_check_ms, self._check_drained)

    def _check_drained(self) -> None:
        self._checking = False
        if not self.closed:
            self.update_reading()

    def _pause_ended(self) -> None:
        self._pause = None
        if not self.closed:
            self.update_reading()
