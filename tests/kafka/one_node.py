"""One node that is controller and broker, of either program, asked in raw frames."""

from __future__ import annotations

import socket
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from quorate.cli.nodes.cluster_dir import free_ports
from quorate.quorum.protocol import headers
from quorate.quorum.protocol.apis import APIS
from quorate.quorum.protocol.codec import decode, encode
from quorate.quorum.protocol.wire import Message
from tests.clients.cluster import tail, wait_for
from tests.golden.nodes import CLUSTER_ID, KAFKA, Program

START_TIMEOUT_S = 90.0
ANSWER_TIMEOUT_S = 30.0
# Those that Quorate does not have are not finalized there either.
NEW_FEATURES = ("group.version", "transaction.version")


class Connection:
    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=ANSWER_TIMEOUT_S)

    def ask(self, request: Message, version: int) -> Message | None:
        """Send a request and return its response, or None if the node closed the connection."""
        api = APIS[request.API_KEY]
        header = headers.request_header(
            api.key, version, 7, "test", api.request_header_version(version)
        )
        body = header + encode(request, version)
        self._socket.sendall(struct.pack(">i", len(body)) + body)
        frame = self._frame()
        if frame is None:
            return None
        answer: Message = decode(
            api.response,
            version,
            headers.response_body(memoryview(frame), api.response_header_version(version)),
        )
        return answer

    def close(self) -> None:
        self._socket.close()

    def _frame(self) -> bytes | None:
        size = self._read(4)
        return None if size is None else self._read(int.from_bytes(size, "big"))

    def _read(self, count: int) -> bytes | None:
        data = b""
        while len(data) < count:
            try:
                chunk = self._socket.recv(count - len(data))
            except ConnectionResetError:
                return None
            if not chunk:
                return None
            data += chunk
        return data


class OneNode:
    """One process of `program` that is controller and broker."""

    def __init__(self, root: Path, program: Program, *settings: str) -> None:
        self.program = program
        self._settings = settings
        self.port, self.controller_port = free_ports(2)
        self._root = root
        self.data = root / "data"
        self._log = root / "node.log"

    def listeners(self) -> str:
        """Return the lines about listeners in the properties of the node."""
        return (
            f"listeners=PLAINTEXT://127.0.0.1:{self.port},"
            f"CONTROLLER://127.0.0.1:{self.controller_port}\n"
            "controller.listener.names=CONTROLLER\n"
        )

    def connect(self, *, controller: bool = False) -> Connection:
        return Connection(self.controller_port if controller else self.port)

    @contextmanager
    def running(self) -> Iterator[OneNode]:
        self._root.mkdir(parents=True)
        file = self._root / "server.properties"
        file.write_text(
            "process.roles=broker,controller\n"
            "node.id=1\n"
            f"controller.quorum.voters=1@127.0.0.1:{self.controller_port}\n"
            f"{self.listeners()}"
            f"log.dirs={self._root / 'data'}\n"
            "offsets.topic.replication.factor=1\n"
            "offsets.topic.num.partitions=1\n"
            "group.initial.rebalance.delay.ms=0\n"
            "auto.create.topics.enable=false\n"
            "num.io.threads=2\n"
            "num.network.threads=1\n" + "".join(f"{each}\n" for each in self._settings)
        )
        features = [part for each in NEW_FEATURES for part in ("--feature", f"{each}=0")]
        formatted = self.program.run(
            "storage",
            *("format", "-t", CLUSTER_ID, "-c", str(file)),
            *(features if self.program is KAFKA else ()),
        )
        assert formatted.code == 0, formatted.errors
        with open(self._log, "wb") as log:
            process = subprocess.Popen(self.program.node(file), stdout=log, stderr=log)
        try:
            wait_for(
                self._serves, f"{self.program.name} serves\n{tail(self._log)}", START_TIMEOUT_S
            )
            yield self
        finally:
            process.kill()
            process.wait()

    def _serves(self) -> bool:
        """Return True if the broker lists itself as alive, so it is unfenced."""
        from quorate.quorum.protocol.schemas.metadata import MetadataRequest, MetadataResponse

        try:
            connection = self.connect()
            answer = connection.ask(MetadataRequest(topics=()), 9)
            connection.close()
        except OSError:
            return False
        return isinstance(answer, MetadataResponse) and len(answer.brokers) == 1
