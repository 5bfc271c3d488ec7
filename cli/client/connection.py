"""One blocking connection of the command line to a Kafka port.

A command sends one request after another, so it needs no event loop. Its start thus stays under 100
ms. The node's ApiVersions response lists the versions that it serves. Each request uses the highest
version that both ends support."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar, cast

from quorate.cli.client.errors import Refused
from quorate.cli.client.sasl_login import Login, log_in
from quorate.cli.client.tls_probe import TlsProbe
from quorate.quorum.protocol.apis import APIS, Api
from quorate.quorum.protocol.codec import decode, reader, writer
from quorate.quorum.protocol.headers import request_header
from quorate.quorum.protocol.schemas.api_versions import ApiVersionsRequest, ApiVersionsResponse
from quorate.quorum.protocol.varint import DecodeError, EncodeError, read_uvarint
from quorate.quorum.protocol.wire import Message
from quorate.quorum.seams import Address

if TYPE_CHECKING:
    import ssl

R = TypeVar("R", bound=Message)

MAX_RESPONSE_BYTES = 1 << 30
SOFTWARE_NAME = "quorate-cli"
INT32 = struct.Struct(">i")
UNSUPPORTED_VERSION = 35
SESSION_SHARE = 0.85
"""The share of a session after which a command logs in again, as clients of Java do (KIP-368)."""


class ConnectionLost(Exception):
    """The connection could not be opened, or it broke.

    The outcome of a request in flight is unknown. `absent` is True if no program listens at the
    address, or if its host name does not resolve. Only an operator can then change that."""

    def __init__(self, reason: str, *, absent: bool = False) -> None:
        super().__init__(reason)
        self.absent = absent


class Unsupported(Refused):
    """The node does not serve the API in any version that this client supports."""


class Connection:
    """One TCP connection to a node, owned by one thread.

    Invariant: at most one request is in flight. The caller waits for its response before it sends
    the next request. If a socket operation fails or is interrupted, the connection closes, because
    a response still in flight would be taken for that of a later request."""

    def __init__(
        self,
        host: str,
        port: int,
        *,
        timeout_s: float,
        client_id: str,
        tls: ssl.SSLContext | None = None,
        login: Login | None = None,
        probe: TlsProbe | None = None,
    ) -> None:
        """Connect within `timeout_s`, and again that for the handshake of `tls`. The first request
        is preceded by the `login`. If a node closes a connection without TLS, the `probe` finds out
        whether the node demands it. Raise ConnectionLost if that
        fails, and Refused if one end does not accept the other's certificate, protocol versions or
        cipher suites."""
        self.address = str(Address(host, port))
        self._place = host, port
        self._probe = probe if tls is None else None
        self._client_id = client_id
        self._correlation_id = 0
        try:
            self._socket = socket.create_connection((host, port), timeout_s)
        except OSError as error:
            absent = isinstance(error, ConnectionRefusedError | socket.gaierror)
            raise ConnectionLost(f"{self.address}: {reason_of(error)}", absent=absent) from None
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls is not None:
            with self._closed_when_it_fails():
                self._socket = tls.wrap_socket(self._socket, server_hostname=host)
        self._versions: dict[int, tuple[int, int]] = {}
        self._login = login
        self._login_due_s: float | None = 0.0 if login else None  # None: never

    def call(self, request: Message, response: type[R], timeout_s: float) -> R:
        """Send a request and return its response.

        `timeout_s` bounds each wait for the socket. Raise ConnectionLost if it passes without a
        byte or the connection breaks, Unsupported if the node does not serve the API, and Refused
        if the request cannot be encoded or the response cannot be decoded."""
        return self.begin(request, response, timeout_s)()

    def begin(self, request: Message, response: type[R], timeout_s: float) -> Callable[[], R]:
        """Send a request, and return a function that waits for the response and returns it.

        The caller must call that function before it sends another request on this connection. It
        lets one command wait for several nodes at the same time. Both steps raise ConnectionLost
        and Refused as `call` does; the first one also raises Unsupported."""
        api = APIS[request.API_KEY]
        version = self._agreed(api, timeout_s)
        self._send(api, version, request, timeout_s)
        return lambda: cast(R, self._answer(api, version))

    def serves(self, api_key: int, timeout_s: float) -> bool:
        """Return True if the node lists the API in its ApiVersions response, in any version.

        Raise ConnectionLost and Refused as `call` does."""
        self._agree(timeout_s)
        return api_key in self._versions

    @property
    def closed(self) -> bool:
        """Return True if the connection is closed, by either `close` or a failure."""
        return self._socket.fileno() < 0

    def certificate_end_s(self) -> float | None:
        """Return the end of validity of the node's certificate, in seconds since 1970 UTC. Return
        None without TLS, or if the certificate is not verified."""
        own = getattr(self._socket, "getpeercert", None)
        found = own() if own is not None else None
        if not found:
            return None
        import ssl

        return ssl.cert_time_to_seconds(found["notAfter"])

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def _agreed(self, api: Api, timeout_s: float) -> int:
        self._agree(timeout_s)
        self._authenticate(timeout_s)
        return self._common(api)

    def _common(self, api: Api) -> int:
        low, high = self._versions.get(api.key, (1, 0))
        version = min(high, api.max_version)
        if version < max(low, api.min_version):
            raise Unsupported(
                f"{self.address} does not serve {api.name} in a version that quorate supports"
            )
        return version

    def _agree(self, timeout_s: float) -> None:
        if self._versions:
            return
        api = APIS[ApiVersionsRequest.API_KEY]
        request = ApiVersionsRequest(
            client_software_name=SOFTWARE_NAME, client_software_version="1"
        )
        answer = None
        # a node that does not support the version answers in v0 (KIP-511)
        for version in (api.max_version, 3, 0):
            try:
                answer = cast(ApiVersionsResponse, self._exchange(api, version, request, timeout_s))
            except ConnectionLost:
                if self._probe is not None and self._probe.demands_tls(*self._place):
                    raise Refused(
                        f"{self.address} demands TLS: give --command-config a file with "
                        "security.protocol=SSL or SASL_SSL"
                    ) from None
                raise
            if answer.error_code != UNSUPPORTED_VERSION:
                break
        assert answer is not None
        self._versions = {
            each.api_key: (each.min_version, each.max_version) for each in answer.api_keys
        }

    def _authenticate(self, timeout_s: float) -> None:
        """Log in if that is due: before the first request, and again before the session ends."""
        login, due_s = self._login, self._login_due_s
        if login is None or due_s is None or time.monotonic() < due_s:
            return

        def ask(request: Message) -> Message:
            api = APIS[request.API_KEY]
            return cast(Message, self._exchange(api, self._common(api), request, timeout_s))

        lifetime_ms = log_in(login, ask, self.address)
        session_s = lifetime_ms * SESSION_SHARE / 1000
        self._login_due_s = time.monotonic() + session_s if lifetime_ms else None

    def _exchange(self, api: Api, version: int, request: Message, timeout_s: float) -> object:
        self._send(api, version, request, timeout_s)
        return self._answer(api, version)

    def _send(self, api: Api, version: int, request: Message, timeout_s: float) -> None:
        self._correlation_id += 1
        header_version = api.request_header_version(version)
        try:
            frame = bytearray(
                request_header(
                    api.key, version, self._correlation_id, self._client_id, header_version
                )
            )
            writer(type(request), version, header_version == 2)(frame, request)
        except EncodeError as error:
            raise Refused(f"a value does not fit {api.name} version {version}: {error}") from None
        with self._closed_when_it_fails():
            self._socket.settimeout(timeout_s)
            self._socket.sendall(INT32.pack(len(frame)) + frame)

    def _answer(self, api: Api, version: int) -> object:
        with self._closed_when_it_fails():
            answer = self._receive()
        (correlation_id,) = INT32.unpack_from(answer)
        if correlation_id != self._correlation_id:
            self.close()
            raise ConnectionLost(f"{self.address}: answered another request")
        try:
            return self._decoded(api, version, answer)
        except DecodeError as error:
            self.close()
            raise Refused(
                f"{self.address} sent a response to {api.name} that cannot be decoded: {error}. "
                "Check that a Kafka broker or controller listens on that port."
            ) from None

    @contextmanager
    def _closed_when_it_fails(self) -> Iterator[None]:
        """Close the connection if the block fails, and raise an OSError as ConnectionLost."""
        try:
            yield
        except OSError as error:
            self.close()
            if is_refusal(error):
                raise Refused(f"{self.address}: TLS failed: {error}") from None
            raise ConnectionLost(f"{self.address}: {error}") from None
        # Ctrl-C: the response in flight would be taken for that of a later request
        except BaseException:
            self.close()
            raise

    @staticmethod
    def _decoded(api: Api, version: int, answer: bytes) -> object:
        position = INT32.size
        if api.key == ApiVersionsRequest.API_KEY and error_of(answer) == UNSUPPORTED_VERSION:
            return decode(ApiVersionsResponse, 0, answer, position)
        if api.response_header_version(version) == 1:
            position = skip_tags(answer, position)
        body, _ = reader(api.response, version, version >= api.flexible_since)(answer, position)
        return body

    def _receive(self) -> bytes:
        (size,) = INT32.unpack(self._read(INT32.size))
        if not INT32.size <= size <= MAX_RESPONSE_BYTES:
            raise OSError(f"it sent a frame of {size} bytes; check that the port is a Kafka port")
        return self._read(size)

    def _read(self, size: int) -> bytes:
        buffer = bytearray(size)
        view = memoryview(buffer)
        received = 0
        while received < size:
            count = self._socket.recv_into(view[received:])
            if count == 0:
                raise OSError("it closed the connection")
            received += count
        return bytes(buffer)


@contextmanager
def lost_is_an_answer(answers: dict[int, R | ConnectionLost], node_id: int) -> Iterator[None]:
    """Record a ConnectionLost of the block as the answer of the node."""
    try:
        yield
    except ConnectionLost as error:
        answers[node_id] = error


def reason_of(error: OSError) -> str:
    """Return the reason why a connection could not be opened, without the number of the error."""
    if isinstance(error, ConnectionRefusedError):
        return "connection refused"
    if isinstance(error, socket.gaierror):
        return "the host name does not resolve"
    return error.strerror or str(error)


def is_refusal(error: OSError) -> bool:
    """Return True if a TLS handshake failed, which would also fail at the next attempt.

    With TLS 1.3, the refusal of a client's certificate arrives after the client's handshake."""
    if getattr(error, "library", None) != "SSL":  # without TLS, ssl need not be imported
        return False
    import ssl

    return isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLEOFError)


def error_of(api_versions: bytes) -> int:
    """Return the error code of an ApiVersions response. Its place is the same in each version."""
    return int.from_bytes(api_versions[4:6], "big", signed=True)


def skip_tags(answer: bytes, position: int) -> int:
    """Return the position after the tagged fields of a response header.

    Kafka defines no such fields yet. Raise DecodeError if the header is cut off."""
    try:
        count, position = read_uvarint(answer, position)
        for _ in range(count):
            _, position = read_uvarint(answer, position)
            size, position = read_uvarint(answer, position)
            position += size
    except IndexError:
        raise DecodeError("the header of a response is cut off") from None
    if position > len(answer):
        raise DecodeError("the header of a response is cut off")
    return position
