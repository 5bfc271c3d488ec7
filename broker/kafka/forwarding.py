"""Admin requests that only the active controller can rule on: forwarded in Kafka's own bytes.

Requests keep their order and are not repeated: only what was provably not appended is sent again,
by `controller_client.py`; an unknown outcome is told to the client as REQUEST_TIMED_OUT.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from quorate.quorum.controller.messages import EnvelopeRequest, EnvelopeResponse
from quorate.quorum.rpc.kafka.apis import APIS
from quorate.quorum.rpc.kafka.codec import DecodeError, decode
from quorate.quorum.rpc.kafka.errors import ErrorCode
from quorate.quorum.rpc.kafka.failures import FAILURES
from quorate.quorum.rpc.kafka.server import RequestContext

FORWARD_TIMEOUT_MS = 30_000
FORWARDED_API_KEYS = tuple(FAILURES)


class Forwarder(Protocol):
    def forward(
        self, request: EnvelopeRequest, timeout_ms: int, done: Callable[[EnvelopeResponse], None]
    ) -> None: ...


def forwarding_handler(forwarder: Forwarder) -> Callable[[RequestContext, memoryview], None]:
    """A raw handler: the body goes on as it came, the answer's body comes back as it is. Only the
    controller reads it; that it cannot be read shows here when its refusal has to be told."""

    def handle(context: RequestContext, body: memoryview) -> None:
        def done(response: EnvelopeResponse) -> None:
            if response.error == ErrorCode.NONE:
                context.respond_raw(response.body)
            else:
                try:
                    request = decode(APIS[context.api_key].request, context.version, body)
                except DecodeError as error:
                    context.connection.refuse(f"malformed request: {error}")
                    return
                text = "the active controller could not be asked, or its answer was lost"
                failure = FAILURES[context.api_key](request, ErrorCode.of(response.error), text)
                context.respond(failure)

        envelope = EnvelopeRequest(
            api_key=context.api_key,
            version=context.version,
            client_id=context.client_id or "",
            body=body,
        )
        forwarder.forward(envelope, FORWARD_TIMEOUT_MS, done)

    return handle
