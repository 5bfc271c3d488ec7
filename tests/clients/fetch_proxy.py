"""One node behind a relay that reads what clients fetch: which sessions they use, and how."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from quorate.cli.nodes.cluster_dir import free_ports
from quorate.quorum.protocol import headers
from quorate.quorum.protocol.apis import ApiKey
from quorate.quorum.protocol.hot import parse_fetch_request
from tests.clients.cluster import run_quorate, wait_for
from tests.clients.test_combined import CLUSTER_ID, node

FLEXIBLE_SINCE = 12


class Fetched(NamedTuple):
    session_id: int
    epoch: int
    partitions: int


class Relay:
    """Accepts on `port`, and passes everything on to `target`."""

    def __init__(self, port: int, target: int) -> None:
        self.fetches: list[Fetched] = []
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", port))
        self._sockets = [self._listener]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        for each in self._sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self._target))
            self._sockets += (client, server)
            threading.Thread(target=self._requests, args=(client, server), daemon=True).start()
            threading.Thread(target=self._answers, args=(server, client), daemon=True).start()

    def _requests(self, client: socket.socket, server: socket.socket) -> None:
        """Frame by frame."""
        try:
            with client.makefile("rb") as stream:
                while size := stream.read(4):
                    frame = stream.read(int.from_bytes(size, "big"))
                    self._note(frame)
                    server.sendall(size + frame)
            server.shutdown(socket.SHUT_WR)
        except OSError:
            return

    def _answers(self, server: socket.socket, client: socket.socket) -> None:
        try:
            while data := server.recv(1 << 16):
                client.sendall(data)
            client.shutdown(socket.SHUT_WR)
        except OSError:
            return

    def _note(self, frame: bytes) -> None:
        api_key, version, _ = headers.read_fixed(frame)
        if api_key != ApiKey.FETCH:
            return
        _, start = headers.read_client_id(frame, 2 if version >= FLEXIBLE_SINCE else 1)
        fetch = parse_fetch_request(memoryview(frame)[start:], version)
        self.fetches.append(Fetched(fetch.session_id, fetch.session_epoch, len(fetch.partitions)))


@contextmanager
def relayed_node(root: Path) -> Iterator[tuple[str, Relay]]:
    """The bootstrap address, which is the relay's: the node tells clients no other."""
    client, controller, relay_port = free_ports(3)
    file = root / "server.properties"
    file.write_text(
        "process.roles=broker,controller\n"
        "node.id=1\n"
        f"controller.quorum.voters=1@127.0.0.1:{controller}\n"
        f"listeners=PLAINTEXT://127.0.0.1:{client},CONTROLLER://127.0.0.1:{controller}\n"
        f"advertised.listeners=PLAINTEXT://127.0.0.1:{relay_port}\n"
        "controller.listener.names=CONTROLLER\n"
        "offsets.topic.replication.factor=1\n"
        f"log.dirs={root / 'data'}\n"
    )
    formatted = run_quorate("storage", "format", "-t", CLUSTER_ID, "-c", str(file))
    assert formatted.returncode == 0, formatted.stderr
    log = root / "node.log"
    with node(file, [], log):
        wait_for(lambda: "is running" in log.read_text(), "the broker runs")
        relay = Relay(relay_port, client)
        try:
            yield f"127.0.0.1:{relay_port}", relay
        finally:
            relay.close()


def assert_incremental(fetches: list[Fetched]) -> None:
    """One full fetch began the session; the others went on in it and named what changed only."""
    incremental = [each for each in fetches if each.epoch > 0]
    assert incremental, fetches
    sessions = {each.session_id for each in incremental}
    assert len(sessions) == 1 and 0 not in sessions, fetches
    epochs = [each.epoch for each in incremental]
    assert epochs == list(range(1, len(epochs) + 1))
    full = [each for each in fetches if each.epoch == 0]
    assert len(full) == 1, fetches
    assert any(each.partitions < full[0].partitions for each in incremental), fetches
