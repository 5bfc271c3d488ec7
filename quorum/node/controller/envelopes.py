"""The requests that brokers forward for their clients, in envelopes (KIP-590).

One frame of a link between nodes can hold thousands of envelopes, whose requests take up to 15 ms
each to decode. They are therefore decoded in slices of SLICE_MS, one in each iteration of the event
loop. Links take turns, and envelopes of one link keep their order.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass

from quorate.quorum.controller.state.context import Caller
from quorate.quorum.controller.state.messages import EnvelopeRequest, EnvelopeResponse
from quorate.quorum.controller.state.result import RequestRefused
from quorate.quorum.histogram import US_PER_MS
from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.node.controller.client_of_envelope import client_of_envelope
from quorate.quorum.node.controller.controller_batch import Refusal
from quorate.quorum.node.controller.controller_queue import ControllerQueue
from quorate.quorum.node.controller.request_bytes import client_request_bytes
from quorate.quorum.node.controller.unchecked_tls import unchecked_tls
from quorate.quorum.principal import ANONYMOUS
from quorate.quorum.protocol.apis import APIS, Api
from quorate.quorum.protocol.codec import DecodeError, decode, decode_steps, encode
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.error_responses import ERROR_RESPONSES
from quorate.quorum.protocol.wire import Message
from quorate.quorum.rpc.channel import Reply
from quorate.quorum.rpc.hello import Peer
from quorate.quorum.rpc.kafka.authorization import PortAuthorizer
from quorate.quorum.seams import Clock

SLICE_MS = 5
"""The length of a slice. The last step may exceed it."""
STEPS_PER_SLICE = 1_000
"""The most steps of a slice. It is the only bound if the clock stands still, as in simulations."""
WHOLE_BYTES = 4_096
"""Requests up to this size are decoded in one step."""
# Kafka's error for each refusal, for admin clients and for brokers that forward a request.
REFUSALS = {
    Refusal.NOT_CONTROLLER: ErrorCode.NOT_CONTROLLER,
    Refusal.UNKNOWN: ErrorCode.REQUEST_TIMED_OUT,
    Refusal.EXPIRED: ErrorCode.REQUEST_TIMED_OUT,
    Refusal.TOO_LARGE: ErrorCode.POLICY_VIOLATION,
    Refusal.FAILED: ErrorCode.UNKNOWN_SERVER_ERROR,
}
Ask = Callable[[Message, Caller, Hashable, int, Callable[[object], None]], None]
"""Gets a request, its sender, its source and its bytes in memory, and a function that it calls
once, with the response's bytes or with a Refusal."""
Failed = Callable[[Peer, object, Reply, Exception], bool]
"""Answers a request that raised an exception, or stops the node (`NodeRequests.failed`)."""


@dataclass(frozen=True, slots=True)
class _Envelope:
    peer: Peer
    message: EnvelopeRequest
    reply: Reply


class Envelopes:
    """The envelopes of one controller that are not decoded yet. The node's event loop owns it."""

    def __init__(
        self, clock: Clock, authorizer: PortAuthorizer | None, ask: Ask, failed: Failed
    ) -> None:
        """`ask` decides a request. `authorizer` is that of this controller, or None."""
        self._clock = clock
        self._authorizer = authorizer
        self._ask = ask
        self._failed = failed
        self._waiting: ControllerQueue[_Envelope] = ControllerQueue()
        self._begun: tuple[_Envelope, IncrementalWork[None]] | None = None
        self._scheduled = False
        self._left_us = SLICE_MS * US_PER_MS
        self._left_steps = STEPS_PER_SLICE

    def handle(self, peer: Peer, message: EnvelopeRequest, reply: Reply) -> None:
        """Handle a forwarded request. Call `reply` once, now or later.

        The response holds the bytes for the client. Its error is UNSUPPORTED_VERSION for an API or
        version that is not forwarded, INVALID_REQUEST for bytes that cannot be decoded,
        SECURITY_DISABLED if the broker relies on an authorizer that this controller does not have,
        NOT_CONTROLLER if too many envelopes wait, and the error in REFUSALS for a request that was
        not carried out."""
        envelope = _Envelope(peer, message, reply)
        self._schedule()
        if self._begun is None and not self._waiting and self._has_time():
            self._begin(envelope)
        # The address tells links apart. The hash of a Peer covers its whole Hello, which costs more
        # than the rest of the queue.
        elif not self._waiting.push(envelope, peer.address, len(message.body)):
            reply(EnvelopeResponse(error=ErrorCode.NOT_CONTROLLER))

    def _has_time(self) -> bool:
        return self._left_us > 0 and self._left_steps > 0

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self._clock.call_soon(self._run)

    def _run(self) -> None:
        """Begin a new slice, and go on with what waits."""
        self._scheduled = False
        self._left_us, self._left_steps = SLICE_MS * US_PER_MS, STEPS_PER_SLICE
        if self._begun is not None:
            self._go_on()
        while self._begun is None and self._waiting and self._has_time():
            self._begin(self._waiting.pop())
        if self._begun is not None or self._waiting:
            self._schedule()

    def _begin(self, envelope: _Envelope) -> None:
        self._begun = envelope, self._steps(envelope)
        self._go_on()

    def _go_on(self) -> None:
        """Run steps of the envelope that is begun, to its end or that of the slice."""
        assert self._begun is not None
        envelope, steps = self._begun
        last_us = self._clock.now_us()
        try:
            while self._has_time():
                self._left_steps -= 1
                next(steps)
                now_us = self._clock.now_us()
                self._left_us -= now_us - last_us
                last_us = now_us
        except StopIteration:
            self._begun = None
        except Exception as error:
            self._begun = None
            self._failed(envelope.peer, envelope.message, envelope.reply, error)
        self._left_us -= self._clock.now_us() - last_us

    def _steps(self, envelope: _Envelope) -> IncrementalWork[None]:
        """Decode a request and ask for its decision."""
        message, reply = envelope.message, envelope.reply
        api = APIS.get(message.api_key)
        if api is None or message.api_key not in ERROR_RESPONSES or not api.serves(message.version):
            reply(EnvelopeResponse(error=ErrorCode.UNSUPPORTED_VERSION))
            return
        if message.must_check and self._authorizer is None:
            reply(EnvelopeResponse(error=ErrorCode.SECURITY_DISABLED))
            return
        try:
            request, size_bytes = yield from _decoded(api, message)
        except DecodeError:
            reply(EnvelopeResponse(error=ErrorCode.INVALID_REQUEST))
            return
        if (reason := unchecked_tls(request, envelope.peer.node_id)) is not None:
            refused = ERROR_RESPONSES[message.api_key](request, ErrorCode.INVALID_REQUEST, reason)
            reply(EnvelopeResponse(error=ErrorCode.NONE, body=encode(refused, message.version)))
            return
        try:
            client = None
            if self._authorizer is not None:
                client = client_of_envelope(self._authorizer.authorizer, message, request)
        except RequestRefused as error:
            reply(EnvelopeResponse(error=error.error))
            return

        def answer(response: object) -> None:
            if isinstance(response, Refusal):
                reply(EnvelopeResponse(error=REFUSALS[response]))
            else:
                assert isinstance(response, bytes)
                reply(EnvelopeResponse(error=ErrorCode.NONE, body=response))

        # Brokers of earlier releases name no principal.
        user = message.principal_name or ANONYMOUS.name
        caller = Caller(message.client_id, message.version, message.api_key, client, user)
        self._ask(request, caller, envelope.peer.address, size_bytes, answer)


def _decoded(api: Api, message: EnvelopeRequest) -> IncrementalWork[tuple[Message, int]]:
    """Return the request in an envelope, and the memory that it holds. Raise DecodeError."""
    request: Message
    elements: int | None = None
    if len(message.body) <= WHOLE_BYTES:
        request = decode(api.request, message.version, message.body)
    else:
        request, elements = yield from decode_steps(api.request, message.version, message.body)
    return request, client_request_bytes(len(message.body), elements)
