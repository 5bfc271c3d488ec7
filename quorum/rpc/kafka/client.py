"""The client's end of one Kafka connection: pipelined requests, with responses by callback.

Requests leave immediately. A server answers in the order of the requests, so a request that times
out ends the connection: no later request could be answered either. All requests in flight then fail
with RequestTimedOut. One timer serves all timeouts. The caller retries, because only the caller
knows which requests may be repeated.

Invariant: every callback runs exactly once, with the body of the response or with a ClientError.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from quorate.quorum.protocol import headers
from quorate.quorum.protocol.apis import APIS, Api, ApiKey
from quorate.quorum.protocol.codec import decode, encode
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.api_versions import ApiVersionsRequest, ApiVersionsResponse
from quorate.quorum.protocol.varint import DecodeError
from quorate.quorum.protocol.wire import Message
from quorate.quorum.seams import Address, Buffer, Clock, Link, Timer, Transport, Wire

logger = logging.getLogger("quorate.kafka")


class ClientError(Exception):
    """A request got no response. If `sent` is False, the server cannot have seen the request.

    `retriable` is True if the same request may succeed on a new connection."""

    retriable = True
    sent = True


class Disconnected(ClientError):
    """The connection was lost. The outcome of the request is unknown."""


class NotSent(ClientError):
    """The request was not sent: the connection was closed before, or too many requests are in
    flight."""

    sent = False


class RequestTimedOut(ClientError):
    """No response arrived in time, to this request or to another one of the connection. The outcome
    of the request is unknown."""


class UnsupportedVersion(ClientError):
    """Client and server support no common version of the API. `negotiate` also raises it if the
    server answers ApiVersions with an error."""

    retriable = False
    sent = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    """The identity and the bounds of a client."""

    client_id: str = "quorate"
    software_name: str = "quorate"
    software_version: str = "0.1.0"
    request_timeout_ms: int = 30_000
    connect_timeout_ms: int = 10_000
    max_in_flight: int = 10_000
    max_frame_bytes: int = 256 << 20


Done = Callable[[memoryview | None, ClientError | None], None]
"""Takes the body of the response and None, or None and the error."""


class _Pending(NamedTuple):
    correlation_id: int
    header_version: int
    deadline_ms: int
    done: Done


class KafkaClient:
    """One connection of a client. Created by `connect`, or directly over a link whose handler it
    then is.

    The event loop owns it. `_pending` holds the requests in flight, oldest first."""

    def __init__(self, link: Link, clock: Clock, settings: ClientSettings) -> None:
        """Create the client of an open link."""
        self.link = link
        self.settings = settings
        self.versions: dict[int, tuple[int, int]] = {}
        """The lowest and highest version that the server serves, by API key. Empty before
        `negotiate`."""
        self._clock = clock
        self._pending: deque[_Pending] = deque()
        self._correlation_id = 0
        self._timer: Timer | None = None
        self._timer_ms = 0
        self._lost: ClientError | None = None

    @classmethod
    async def connect(
        cls,
        transport: Transport,
        clock: Clock,
        address: Address,
        settings: ClientSettings | None = None,
    ) -> KafkaClient:
        """Connect to `address` and return a client. Its versions are not negotiated yet.

        Raise PeerRefused or PeerUnreachable if there is no connection."""
        chosen = settings or ClientSettings()
        made: list[KafkaClient] = []

        def accept(link: Link) -> KafkaClient:
            made.append(cls(link, clock, chosen))
            return made[0]

        await transport.connect(
            address,
            Wire.KAFKA,
            accept,
            max_frame_bytes=chosen.max_frame_bytes,
            timeout_ms=chosen.connect_timeout_ms,
        )
        return made[0]

    @property
    def closed(self) -> bool:
        """Return True if the connection is closed or lost."""
        return self._lost is not None

    @property
    def in_flight(self) -> int:
        """Return the number of requests that wait for a response."""
        return len(self._pending)

    def close(self) -> None:
        """Close the connection. Requests in flight fail with Disconnected."""
        self._lose(Disconnected("the client closed the connection"))
        self.link.close()

    def send_raw(
        self, api: Api, version: int, *body: Buffer, done: Done, timeout_ms: int | None = None
    ) -> None:
        """Send a request whose encoded body is `body`. Call `done` with the response's body or a
        ClientError.

        The parts of `body` follow the header, and must not change until they are written. The
        timeout is `settings.request_timeout_ms` unless `timeout_ms` is given. A request that has no
        response, such as a Produce with acks=0, would time out and end the connection."""
        if self._lost is not None:
            self._clock.call_soon(lambda: done(None, NotSent(str(self._lost))))
            return
        if len(self._pending) >= self.settings.max_in_flight:
            full = NotSent(f"{self.settings.max_in_flight} requests are in flight to {self._peer}")
            self._clock.call_soon(lambda: done(None, full))
            return
        self._correlation_id = self._correlation_id + 1 & 0x7FFFFFFF
        wait_ms = self.settings.request_timeout_ms if timeout_ms is None else timeout_ms
        deadline_ms = self._clock.now_ms() + wait_ms
        self._pending.append(
            _Pending(
                self._correlation_id,
                api.response_header_version(version),
                deadline_ms,
                done,
            )
        )
        head = headers.request_header(
            api.key,
            version,
            self._correlation_id,
            self.settings.client_id,
            api.request_header_version(version),
        )
        self.link.send(head, *body)
        self._watch(deadline_ms)

    async def call(
        self, request: Message, version: int | None = None, *, timeout_ms: int | None = None
    ) -> Any:
        """Send `request` and return its decoded response. Without `version`, use the highest common
        one.

        Raise a ClientError if there is no response, EncodeError if the request does not fit the
        version, and DecodeError if the response is malformed."""
        api = APIS[request.API_KEY]
        chosen = self.version_of(api.key) if version is None else version
        body = await self._answer(api, chosen, encode(request, chosen), timeout_ms)
        return decode(api.response, chosen, body)

    async def negotiate(self) -> dict[int, tuple[int, int]]:
        """Ask for the versions that the server serves (KIP-35), store them in `versions`, and
        return them.

        A server that does not know our version answers with error 35 in version 0. The request is
        then repeated in the highest version that the server offers (KIP-511). Raise
        UnsupportedVersion if the server refuses a version that it offers, or reports another error.
        Raise another ClientError if there is no response, and DecodeError if it is malformed."""
        api = APIS[ApiKey.API_VERSIONS]
        version = api.max_version
        while True:
            request = ApiVersionsRequest(
                client_software_name=self.settings.software_name,
                client_software_version=self.settings.software_version,
            )
            body = await self._answer(api, version, encode(request, version), None)
            refused = bytes(body[:2]) == ErrorCode.UNSUPPORTED_VERSION.to_bytes(2, "big")
            response = decode(ApiVersionsResponse, 0 if refused else version, body)
            offered = {each.api_key: each for each in response.api_keys}
            if not refused:
                break
            lower = offered[api.key].max_version if api.key in offered else 0
            if lower >= version:
                raise UnsupportedVersion(
                    f"{self._peer} refuses version {version} of ApiVersions, but offers it"
                )
            version = lower
        if response.error_code != ErrorCode.NONE:
            error = ErrorCode.of(response.error_code)
            raise UnsupportedVersion(f"{self._peer} refuses ApiVersions: {error.name}")
        self.versions = {key: (each.min_version, each.max_version) for key, each in offered.items()}
        return self.versions

    def version_of(self, api_key: int) -> int:
        """Return the highest version of an API that both ends support. Before `negotiate`, return
        ours.

        Raise UnsupportedVersion if there is no common version."""
        api = APIS[api_key]
        if not self.versions:
            return api.max_version
        low, high = self.versions.get(api_key, (0, -1))
        version = min(high, api.max_version)
        if version < max(low, api.min_version):
            raise UnsupportedVersion(
                f"{api.name}: {self._peer} serves versions {low} to {high}, "
                f"we speak {api.min_version} to {api.max_version}"
            )
        return version

    def on_frame(self, frame: memoryview) -> None:
        """Pass a response to the oldest request. Raise DecodeError if it belongs to another
        request."""
        correlation_id = headers.read_correlation_id(frame)
        if not self._pending or self._pending[0].correlation_id != correlation_id:
            raise DecodeError(f"a response to request {correlation_id}, which is not the oldest")
        body = headers.response_body(frame, self._pending[0].header_version)
        self._pending.popleft().done(body, None)

    def on_closed(self, error: Exception | None) -> None:
        """Fail all requests in flight with Disconnected."""
        self._lose(Disconnected(f"the link to {self._peer} was lost: {error or 'it was closed'}"))

    @property
    def _peer(self) -> Address:
        return self.link.peer

    async def _answer(
        self, api: Api, version: int, body: bytes, timeout_ms: int | None
    ) -> memoryview:
        answer: asyncio.Future[memoryview] = asyncio.get_running_loop().create_future()

        def done(response: memoryview | None, error: ClientError | None) -> None:
            if answer.done():  # the caller was cancelled meanwhile
                return
            if response is not None:
                answer.set_result(response)
            else:
                answer.set_exception(error or Disconnected(str(self._peer)))

        self.send_raw(api, version, body, done=done, timeout_ms=timeout_ms)
        return await answer

    def _watch(self, deadline_ms: int) -> None:
        """Set the timer, which never runs later than the earliest deadline of all requests."""
        if self._timer is not None:
            if self._timer_ms <= deadline_ms:
                return
            self._timer.cancel()
        self._timer_ms = deadline_ms
        self._timer = self._clock.call_later(deadline_ms - self._clock.now_ms(), self._sweep)

    def _sweep(self) -> None:
        self._timer = None
        if not self._pending:
            return
        earliest_ms = min(pending.deadline_ms for pending in self._pending)
        if earliest_ms > self._clock.now_ms():
            self._watch(earliest_ms)
            return
        self._lose(RequestTimedOut(f"no response from {self._peer} in time"))
        self.link.abort()

    def _lose(self, error: ClientError) -> None:
        if self._lost is not None:
            return
        self._lost = error
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        pending, self._pending = self._pending, deque()
        for each in pending:
            each.done(None, error)
