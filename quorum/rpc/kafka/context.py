"""One request of a Kafka port: the fields of its header, and the methods that answer it.

Answering raises only errors about the node's own state (`boundary.is_node_failure`). If a response
cannot be encoded, or a callback that answers later raises, the request fails at the boundary
(`boundary.py`). A request therefore cannot harm code that calls such a callback, for example a
partition whose high watermark advances.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, Protocol

from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.principal import Principal
from quorate.quorum.protocol import headers
from quorate.quorum.protocol.apis import APIS
from quorate.quorum.protocol.codec import encode, encode_steps
from quorate.quorum.protocol.error_response import error_response
from quorate.quorum.protocol.errors import ErrorCode, KafkaError
from quorate.quorum.protocol.varint import DecodeError
from quorate.quorum.protocol.wire import Message
from quorate.quorum.rpc.kafka.boundary import error_code_of, is_node_failure
from quorate.quorum.rpc.kafka.request_scheduler import ConnectionWork
from quorate.quorum.rpc.kafka.request_times import Stages
from quorate.quorum.seams import Address, Buffer, Clock, Link

P = ParamSpec("P")
NO_FRAME = memoryview(b"")
ELEMENT_BYTES = 120
"""The memory counted for one array element with its fields, which takes 80 to 150 bytes."""


class RequestConnection(Protocol):
    """The connection of a request, as its context and its handler use it."""

    client_software: tuple[str, str] | None
    principal: Principal
    asked_metadata: bool
    closed: bool
    clock: Clock
    link: Link
    work: ConnectionWork

    def __hash__(self) -> int:
        """Return the hash of the identity. Handlers keep state by connection."""

    @property
    def peer(self) -> Address:
        """Return the address of the client."""

    def refuse(
        self, reason: str, context: RequestContext | None = None, frame: Buffer = NO_FRAME
    ) -> None:
        """Close the connection after the responses that were sent to the link. `context` and
        `frame` are those of the refused request."""

    def update_reading(self) -> None:
        """Pause or resume reading, as the bounds now require."""

    def add_response_bytes(self, size_bytes: int) -> None:
        """Count `size_bytes` more of a response that is being built."""

    def pause_reading_for(self, delay_ms: int) -> None:
        """Do not read the connection for `delay_ms`."""

    def send_ready(self, answered: RequestContext) -> None:
        """Send the responses that are ready at the head of the queue. `answered` has just got its
        response."""

    def run(self, context: RequestContext, steps: IncrementalWork[None]) -> None:
        """Let the scheduler run `steps`, which answer `context`, in slices."""

    def report_failure(self, context: RequestContext, error: Exception) -> None:
        """Count and log that the request failed with `error`, which no handler expected."""


class RequestContext:
    """One request: its header, and its place in the queue of responses.

    Answer exactly once: `respond`, `respond_steps`, `respond_raw`, `no_response` or `fail`. A
    second answer closes the connection. Answers to a request that was abandoned are discarded: its
    connection ended, or it `failed` with an exception. All methods run on the event loop."""

    __slots__ = (
        "api_key",
        "client_id",
        "connection",
        "correlation_id",
        "failed",
        "frame",
        "on_abandoned",
        "parts",
        "principal",
        "ready_bytes",
        "received_us",
        "request_bytes",
        "stages",
        "version",
    )

    def __init__(
        self, connection: RequestConnection, api_key: int, version: int, correlation_id: int
    ) -> None:
        """Create the context of a request that has just arrived on `connection`."""
        self.connection = connection
        self.principal = connection.principal
        """The principal of the connection at the arrival. It may have another one later."""
        self.api_key = api_key
        self.version = version
        self.correlation_id = correlation_id
        self.client_id: str | None = None
        self.received_us = connection.clock.now_us()
        self.stages: Stages | None = None
        """The stages of the request, or None if its handler has not returned, or answered it."""
        self.request_bytes = 0
        self.frame = NO_FRAME
        """The whole request, until it is answered. The log line of a failure contains its hash."""
        self.failed = False
        self.on_abandoned: Callable[[], None] | None = None
        """Cancels the operation that waits for this request. Called if the connection closes, an
        unexpected exception fails the request, or the scheduler cuts it off. `fail` does not call
        it."""
        self.ready_bytes = 0
        """Bytes of the response while it is built, or waits for earlier responses."""
        self.parts: tuple[Buffer, ...] | None = None

    @property
    def closed(self) -> bool:
        """Return True if the connection is closed."""
        return self.connection.closed

    @property
    def peer(self) -> Address:
        """Return the address of the client."""
        return self.connection.peer

    def respond(self, response: Message) -> None:
        """Answer with `response`. If it cannot be encoded, fail the request."""
        try:
            body = encode(response, self.version)
        except Exception as error:
            self.fail_with(error)
        else:
            self.respond_raw(body)

    def respond_steps(self, response: Message) -> IncrementalWork[None]:
        """Answer like `respond`, but encode in steps.

        A handler that returns steps uses `yield from`. A callback passes the steps to `run`. If the
        response cannot be encoded, the steps raise EncodeError, and the scheduler fails the
        request."""
        body = yield from encode_steps(response, self.version)
        self.respond_raw(body)

    def respond_raw(self, *body: Buffer) -> None:
        """Answer with the encoded parts of the body. They must not change until they are
        written."""
        header_version = APIS[self.api_key].response_header_version(self.version)
        self._answered(headers.response_header(self.correlation_id, header_version), *body)

    def no_response(self) -> None:
        """End a request that has no response: a Produce with acks=0."""
        self._answered()

    def fail(self, error: ErrorCode, message: str | None = None) -> None:
        """Answer that the whole request failed. If the response has no top-level field for the
        error, close the connection with a log line.

        Without `message`, the response has the default text of `error`."""
        try:
            response = error_response(APIS[self.api_key], self.version, error, message)
            body = None if response is None else encode(response, self.version)
        except Exception:
            body = None
        if body is not None:
            self.respond_raw(body)
        else:
            reason = message if message is not None else error.message
            failure = f"{APIS[self.api_key].name} failed: {error.name}: {reason}"
            self.connection.refuse(failure, self, self.frame)

    def abandon(self) -> None:
        """Discard the state that waits for the request, because it has failed or its connection
        closed."""
        self.frame = NO_FRAME
        self.failed = True
        waiting, self.on_abandoned = self.on_abandoned, None
        if waiting is not None:
            waiting()

    def count_elements(self, elements: int) -> None:
        """Count `elements` of the response in the budget of responses, until the request is
        answered.

        A handler whose response grows with the node's state calls this before it pauses, because
        many such requests may be in progress. The call may close the connection."""
        size_bytes = elements * ELEMENT_BYTES
        self.ready_bytes += size_bytes
        self.connection.add_response_bytes(size_bytes)

    def first_slice(self) -> None:
        """Note that the scheduler begins to run the work of the request."""
        stages = self.stages = self.stages or Stages()
        if not stages.handled_us:
            stages.queued_us = self.connection.clock.now_us() - self.received_us

    def work_ended(self) -> None:
        """Note that the handler has returned, or its work has ended. If the request has no response
        yet, it waits for something else from now on."""
        if self.parts is None:
            stages = self.stages = self.stages or Stages()
            stages.handled_us = stages.handled_us or self.connection.clock.now_us()

    def response_waits(self, now_us: int) -> None:
        """Note that the response is ready, and waits for those of earlier requests."""
        stages = self.stages = self.stages or Stages()
        stages.ready_us = now_us

    def runs_in_slices(self) -> None:
        """Do nothing. A metered request learns here that the scheduler measures its CPU."""

    def used_cpu(self, cpu_ms: float) -> None:
        """Do nothing. A metered request counts here the CPU of a slice of its steps."""

    def run(self, steps: IncrementalWork[None]) -> None:
        """Let the server run `steps`, which answer this request, in slices
        (`request_scheduler.py`)."""
        self.connection.run(self, steps)

    def callback(self, function: Callable[P, None]) -> Callable[P, None]:
        """Return `function` wrapped in the boundary, for a callback that answers this request
        later.

        An exception of `function` fails the request. An error about the node's own state is raised
        to the caller of the callback."""

        def call(*args: P.args, **kwargs: P.kwargs) -> None:
            try:
                function(*args, **kwargs)
            except Exception as error:
                self.fail_with(error)

        return call

    def fail_with(self, error: Exception) -> None:
        """Fail this request because its code raised `error`.

        A KafkaError becomes its error code, and a DecodeError closes the connection. An error about
        the node's own state is raised again."""
        if isinstance(error, KafkaError):
            self.fail(error.code, error.message)
        elif isinstance(error, DecodeError):
            self.connection.refuse(f"malformed request: {error}", self, self.frame)
        elif is_node_failure(error):
            raise error
        else:
            self._failed_by(error)

    def _failed_by(self, error: Exception) -> None:
        code = error_code_of(error)
        self.connection.report_failure(self, error)
        if self.parts is None:
            self.fail(code)
        self.abandon()

    def _answered(self, *parts: Buffer) -> None:
        if self.failed:
            return
        if self.parts is not None:
            self._failed_by(RuntimeError("the request was answered twice"))
            self.connection.refuse(f"{APIS[self.api_key].name} was answered twice", self)
            return
        self.parts = parts
        self.frame = NO_FRAME
        self.connection.send_ready(self)
