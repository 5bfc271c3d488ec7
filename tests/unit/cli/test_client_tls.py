"""The host name in the server's certificate, and a server without TLS."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from quorate.cli.client.client_properties import client_security
from quorate.cli.client.connection import Connection, ConnectionLost
from quorate.cli.client.errors import Refused
from tests.certificates import authority, certificate, files


@contextmanager
def server(context: ssl.SSLContext | None) -> Iterator[int]:
    """Yield the port of a server that takes one connection, with a handshake or with an end."""

    def serve() -> None:
        accepted, _ = listening.accept()
        with accepted:
            if context is None:
                accepted.recv(100)
                return
            try:
                with context.wrap_socket(accepted, server_side=True) as secured:
                    secured.recv(1)
            except (OSError, ssl.SSLError):
                pass  # the client has refused the certificate

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve)
        thread.start()
        yield listening.getsockname()[1]
        thread.join()


def connect(port: int, host: str, tmp: Path, **entries: str) -> None:
    ca = tmp / "ca.pem"
    ca.write_bytes(authority().certificate_pem)
    client = {"security.protocol": "SSL", "ssl.ca.location": str(ca), **entries}
    tls = client_security(client).tls
    Connection(host, port, timeout_s=5, client_id="t", tls=tls).close()


def context_for(tmp: Path, host: str) -> ssl.SSLContext:
    """Return the context of a server whose certificate names `host` only."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files(tmp / "server", certificate("CN=x", hosts=[host])).keystore)
    return context


def test_the_certificate_must_name_the_host(tmp_path: Path) -> None:
    context = context_for(tmp_path, "localhost")
    with (
        server(context) as port,
        pytest.raises(Refused, match="IP address mismatch"),
    ):
        connect(port, "127.0.0.1", tmp_path)
    with server(context) as port:
        connect(port, "localhost", tmp_path)


def test_the_host_is_not_compared_if_the_file_says_so(tmp_path: Path) -> None:
    with server(context_for(tmp_path, "elsewhere.example")) as port:
        off = {"ssl.endpoint.identification.algorithm": ""}
        connect(port, "127.0.0.1", tmp_path, **off)


def test_a_server_that_closes_may_answer_at_the_next_attempt(tmp_path: Path) -> None:
    """A node that starts closes connections. This is no refusal."""
    with server(None) as port, pytest.raises(ConnectionLost):
        connect(port, "127.0.0.1", tmp_path)
