"""Forwards requests that only the active controller can decide, in Kafka's own bytes (KIP-590).

The broker forwards the body of a request unchanged, and sends the body of the controller's response
unchanged. It decodes a request only to name the items of the request in an error response.

A connection may have MAX_FORWARDED_BYTES of requests at the controller, or one request that is
larger. Its other requests wait on this broker. Small requests are therefore pipelined, and a client
with large requests delays only itself. A request of more than MAX_ENVELOPE_BYTES is refused,
because an envelope must fit into a frame between nodes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from quorate.quorum.controller.state.messages import EnvelopeRequest, EnvelopeResponse
from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.node_message_bounds import MAX_NODE_FRAME_BYTES
from quorate.quorum.protocol.apis import APIS
from quorate.quorum.protocol.codec import decode_steps
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.error_responses import ERROR_RESPONSES
from quorate.quorum.rpc.kafka.context import RequestConnection, RequestContext
from quorate.quorum.seams import Buffer

FORWARDED_API_KEYS = tuple(ERROR_RESPONSES)
"""The APIs whose requests are forwarded."""
MAX_FORWARDED_BYTES = 64 * 1024
"""Maximum size of the requests of one connection that are at the controller."""
MAX_ENVELOPE_BYTES = MAX_NODE_FRAME_BYTES // 2
"""Maximum size of one request. The metadata log takes much less at once."""


class Forwarder(Protocol):
    """The channel to the active controller."""

    def forward(
        self, request: EnvelopeRequest, timeout_ms: int, done: Callable[[EnvelopeResponse], None]
    ) -> None:
        """Send the request to the active controller, and call `done` exactly once.

        If no controller answers within `timeout_ms`, the response carries an error. The controller
        may then have carried out the request or not.
        """
        ...


Respond = Callable[[Buffer], None]
"""Answers a client, from the body of the controller's response."""


@dataclass(slots=True)
class _ConnectionQueue:
    """The forwarded requests of one connection."""

    size_bytes: int = 0
    """Size of the requests at the controller; an empty body counts as one byte."""
    waiting: deque[tuple[RequestContext, memoryview, Respond]] = field(default_factory=deque)
    """Requests that are not forwarded yet. The server bounds the open requests of a connection."""


class Forwarding:
    """The handler of all forwarded APIs on one listener. It runs on the broker's event loop."""

    def __init__(
        self,
        forwarder: Forwarder,
        timeout_ms: int = 30_000,
        listener: str = "",
        must_check: Callable[[], bool] | None = None,
    ) -> None:
        """`timeout_ms` is controller.socket.timeout.ms, the longest wait for an answer. `listener`
        is the name of the listener. `must_check` returns True if a controller without an authorizer
        must refuse the requests. It is None on a broker without an authorizer."""
        self._listener = listener
        self._must_check = must_check
        self._forwarder = forwarder
        self._timeout_ms = timeout_ms
        # the connections that have requests open, at most as many as there are connections
        self._queues: dict[RequestConnection, _ConnectionQueue] = {}

    def handle(
        self, context: RequestContext, body: memoryview, respond: Respond | None = None
    ) -> None:
        """Forward the request now, or when enough earlier requests of its connection are answered.

        `body` is the request after its header. If the connection closes first, a waiting request is
        discarded. `respond` gets the controller's response instead of the client, if it is given.
        """
        if len(body) > MAX_ENVELOPE_BYTES:
            context.run(refusal(context, body, ErrorCode.POLICY_VIOLATION))
            return
        queue = self._queues.setdefault(context.connection, _ConnectionQueue())
        queue.waiting.append((context, body, respond or context.respond_raw))
        self._send(context.connection, queue)

    def _send(self, connection: RequestConnection, queue: _ConnectionQueue) -> None:
        """Forward waiting requests up to the bound. Discard them if the connection is closed."""
        if connection.closed:
            queue.waiting.clear()
        while queue.waiting:
            context, body, respond = queue.waiting[0]
            if queue.size_bytes and queue.size_bytes + len(body) > MAX_FORWARDED_BYTES:
                return
            queue.waiting.popleft()
            queue.size_bytes += max(1, len(body))
            self._forward(connection, queue, context, body, respond)
        if not queue.size_bytes:
            self._queues.pop(connection, None)

    def _forward(
        self,
        connection: RequestConnection,
        queue: _ConnectionQueue,
        context: RequestContext,
        body: memoryview,
        respond: Respond,
    ) -> None:
        def done(response: EnvelopeResponse) -> None:
            queue.size_bytes -= max(1, len(body))
            answer(context, body, response, respond)
            self._send(connection, queue)

        envelope = EnvelopeRequest(
            api_key=context.api_key,
            version=context.version,
            client_id=context.client_id or "",
            body=body,
            principal_type=context.principal.type,
            principal_name=context.principal.name,
            client_host=context.peer.host,
            listener=self._listener,
            must_check=self._must_check is not None and self._must_check(),
        )
        self._forwarder.forward(envelope, self._timeout_ms, done)


def answer(
    context: RequestContext, body: memoryview, response: EnvelopeResponse, respond: Respond
) -> None:
    """Pass the body of the controller's response to `respond`. If the controller did not handle the
    request, send an error response of this API to the client."""
    if response.error == ErrorCode.NONE:
        respond(response.body)
    else:
        context.run(refusal(context, body, ErrorCode.of(response.error)))


def refusal(context: RequestContext, body: memoryview, error: ErrorCode) -> IncrementalWork[None]:
    """Send an error response that names every item of the request, in steps.

    Raise DecodeError if the request is malformed. The controller may not have read it.
    """
    request, _ = yield from decode_steps(APIS[context.api_key].request, context.version, body)
    response = ERROR_RESPONSES[context.api_key](request, error, REASONS.get(error, NO_ANSWER))
    yield from context.respond_steps(response)


# The error messages for clients, if the controller sends no response of the API.
NO_ANSWER = "the active controller could not be asked, or its answer was lost"
REASONS = {
    ErrorCode.POLICY_VIOLATION: "the request changes more at once than one batch can hold",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "the controller has an authorizer, but the broker does "
    "not name the client, because it runs an earlier release",
    ErrorCode.SECURITY_DISABLED: "the broker has an authorizer, but the active controller has "
    "none. Set authorizer.class.name on all controllers",
    ErrorCode.UNKNOWN_SERVER_ERROR: "the controller could not carry out the request; "
    "nothing was changed",
}
