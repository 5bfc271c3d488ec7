"""A Kafka port in a thread, whose answers a test scripts. The tests of the command line connect to
it."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from quorate.quorum.protocol.apis import APIS
from quorate.quorum.protocol.codec import reader, writer
from quorate.quorum.protocol.schemas.api_versions import ApiVersion, ApiVersionsResponse
from quorate.quorum.protocol.wire import Message

API_VERSIONS = 18
MAX_REQUEST_BYTES = 100 << 20
HEADER = struct.Struct(">hhih")
Answer = Callable[[Any], Message | None]
"""None closes the connection without an answer."""


class FakeKafka:
    """Serves the APIs of `answers` (by request class) in the versions that Quorate supports."""

    def __init__(self, answers: dict[type[Message], Answer]) -> None:
        self.requests: list[Any] = []
        self._answers = {cls.API_KEY: answer for cls, answer in answers.items()}
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.host, self.port = self._listener.getsockname()[:2]
        self._connections: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    @property
    def address(self) -> str:
        """Return the address as HOST:PORT."""
        return f"{self.host}:{self.port}"

    def close(self) -> None:
        """Close the listener and all connections, and wait for the threads."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(5)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._connections.append(connection)
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        """Answer requests until the client closes the connection, perhaps without reading an
        answer."""
        with (
            contextlib.suppress(ConnectionError),
            connection,
            connection.makefile("rb") as stream,
        ):
            while size := stream.read(4):
                if int.from_bytes(size, "big") > MAX_REQUEST_BYTES:
                    return
                frame = stream.read(int.from_bytes(size, "big"))
                answer = self._answer(frame)
                if answer is None:
                    return
                connection.sendall(len(answer).to_bytes(4, "big") + answer)

    def _answer(self, frame: bytes) -> bytes | None:
        key, version, correlation_id, name_bytes = HEADER.unpack_from(frame)
        api = APIS[key]
        flexible = version >= api.flexible_since
        request_class: Any = api.request
        start = HEADER.size + name_bytes + flexible
        request, _ = reader(request_class, version, flexible)(frame, start)
        answer = self._respond(key, request)
        if answer is None:
            return None
        out = bytearray(struct.pack(">i", correlation_id))
        if api.response_header_version(version) == 1:
            out += b"\0"
        response_class: Any = type(answer)
        writer(response_class, version, flexible)(out, answer)
        return bytes(out)

    def _respond(self, key: int, request: object) -> Message | None:
        if key == API_VERSIONS:
            keys = [
                ApiVersion(
                    api_key=k, min_version=APIS[k].min_version, max_version=APIS[k].max_version
                )
                for k in sorted([API_VERSIONS, *self._answers])
            ]
            return ApiVersionsResponse(api_keys=tuple(keys))
        self.requests.append(request)
        return self._answers[key](request)


@contextmanager
def fake_kafka(answers: dict[type[Message], Answer]) -> Iterator[FakeKafka]:
    """Run a fake Kafka port for the duration of the block."""
    server = FakeKafka(answers)
    try:
        yield server
    finally:
        server.close()
