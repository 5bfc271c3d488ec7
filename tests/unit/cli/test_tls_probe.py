"""A command asks each port once whether it demands TLS."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from quorate.cli.client.tls_probe import TlsProbe

HOST = "127.0.0.1"
HANDSHAKE_RECORD = b"\x16"


@contextmanager
def server(answer: bytes) -> Iterator[tuple[int, list[bytes]]]:
    """Answer the first byte of each connection, and close it. Yield the port and these bytes."""
    heard: list[bytes] = []
    with socket.create_server((HOST, 0)) as listening:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                with connection:
                    heard.append(connection.recv(1))
                    connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield listening.getsockname()[1], heard
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()


@pytest.mark.parametrize(
    ("answer", "demanded"), [(b"", False), (b"\0", False), (b"\x15", True), (b"\x16", True)]
)
def test_a_port_is_asked_once(answer: bytes, demanded: bool) -> None:
    probe = TlsProbe()
    with server(answer) as (port, heard):
        assert probe.demands_tls(HOST, port) == demanded
        assert not any(probe.demands_tls(HOST, port) for _ in range(3))
        assert heard == [HANDSHAKE_RECORD]


def test_a_port_that_cannot_be_reached_is_asked_again() -> None:
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]
    probe = TlsProbe()
    assert not probe.demands_tls(HOST, port)
    assert not probe._asked
