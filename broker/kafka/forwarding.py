"""Admin requests that only the active controller can serve: forwarded in Kafka's own bytes.

The body goes on as it came, and the answer's body comes back as it is. The controller reads the
body. This broker reads it only to name, in a refusal, the items that were asked for.

A connection may have MAX_FORWARDED_BYTES of requests at the controller, or one request if that is
larger. The rest waits here. The cost of an admin request grows with its size, so small requests are
pipelined as fast as before, and a client with large ones delays only itself.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from quorate.quorum.controller.messages import EnvelopeRequest, EnvelopeResponse
from quorate.quorum.protocol.apis import APIS
from quorate.quorum.protocol.codec import DecodeError, decode
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.error_responses import ERROR_RESPONSES
from quorate.quorum.rpc.kafka.context import RequestConnection, RequestContext

FORWARD_TIMEOUT_MS = 30_000
FORWARDED_API_KEYS = tuple(ERROR_RESPONSES)
MAX_FORWARDED_BYTES = 64 * 1024
"""Of one connection's requests at the controller."""


class Forwarder(Protocol):
    def forward(
        self, request: EnvelopeRequest, timeout_ms: int, done: Callable[[EnvelopeResponse], None]
    ) -> None: ...


@dataclass(slots=True)
class _ConnectionQueue:
    """The forwarded requests of one connection."""

    size_bytes: int = 0  # of those at the controller
    waiting: deque[tuple[RequestContext, memoryview]] = field(default_factory=deque)


class Forwarding:
    """`handle` is a raw handler. Bounded by the server, which bounds what a connection has open."""

    def __init__(self, forwarder: Forwarder) -> None:
        self._forwarder = forwarder
        self._queues: dict[
            RequestConnection, _ConnectionQueue
        ] = {}  # those that have requests open

    def handle(self, context: RequestContext, body: memoryview) -> None:
        queue = self._queues.setdefault(context.connection, _ConnectionQueue())
        queue.waiting.append((context, body))
        self._send(context.connection, queue)

    def _send(self, connection: RequestConnection, queue: _ConnectionQueue) -> None:
        """Forward what the bound admits. Discard the requests of a connection that is closed."""
        if connection.closed:
            queue.waiting.clear()
        while queue.waiting:
            context, body = queue.waiting[0]
            if queue.size_bytes and queue.size_bytes + len(body) > MAX_FORWARDED_BYTES:
                return
            queue.waiting.popleft()
            queue.size_bytes += max(1, len(body))
            self._forward(connection, queue, context, body)
        if not queue.size_bytes:
            self._queues.pop(connection, None)

    def _forward(
        self,
        connection: RequestConnection,
        queue: _ConnectionQueue,
        context: RequestContext,
        body: memoryview,
    ) -> None:
        def done(response: EnvelopeResponse) -> None:
            queue.size_bytes -= max(1, len(body))
            answer(context, body, response)
            self._send(connection, queue)

        envelope = EnvelopeRequest(
            api_key=context.api_key,
            version=context.version,
            client_id=context.client_id or "",
            body=body,
        )
        self._forwarder.forward(envelope, FORWARD_TIMEOUT_MS, done)


def answer(context: RequestContext, body: memoryview, response: EnvelopeResponse) -> None:
    """Give the client what the controller answered, or its refusal as this API says it."""
    if response.error == ErrorCode.NONE:
        context.respond_raw(response.body)
        return
    try:
        request = decode(APIS[context.api_key].request, context.version, body)
    except DecodeError as error:
        context.connection.refuse(f"malformed request: {error}")
        return
    error_code = ErrorCode.of(response.error)
    text = REASONS.get(
        error_code, "the active controller could not be asked, or its answer was lost"
    )
    context.respond(ERROR_RESPONSES[context.api_key](request, error_code, text))


NO_ANSWER = "the active controller could not be asked, or its answer was lost"
REASONS = {
    ErrorCode.POLICY_VIOLATION: "the request changes more at once than one batch can hold",
    ErrorCode.UNKNOWN_SERVER_ERROR: "the controller could not carry out the request; "
    "nothing was changed",
}
