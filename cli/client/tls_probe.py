"""The question whether a port demands TLS, after a connection without TLS was lost.

A broker closes such a connection without an answer. A command would otherwise repeat it until its
timeout, with an error that names no remedy."""

from __future__ import annotations

import socket
from contextlib import suppress

TLS_ANSWERS = (b"\x15", b"\x16")
"""The first byte of a server that speaks TLS: an alert, or its part of the handshake."""
PROBE_TIMEOUT_S = 1.0


class TlsProbe:
    """Finds out whether ports demand TLS. It asks each port once, because a broker without TLS
    writes a warning about the question."""

    def __init__(self) -> None:
        self._asked: set[tuple[str, int]] = set()
        """The ports that have answered, at most one for each node of the cluster."""

    def demands_tls(self, host: str, port: int) -> bool:
        """Return True if the port answers the beginning of a TLS handshake, and has not been asked
        before. Blocks for PROBE_TIMEOUT_S at most, and trusts nobody."""
        if (host, port) in self._asked:
            return False
        try:
            answer = _answer(host, port)
        except OSError:
            return False
        self._asked.add((host, port))
        return answer[:1] in TLS_ANSWERS


def _answer(host: str, port: int) -> bytes:
    """Send the beginning of a TLS handshake, and return the beginning of the answer, or nothing if
    the port closes the connection. Raise OSError if it cannot be reached."""
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    outgoing = ssl.MemoryBIO()
    session = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=host)
    with suppress(ssl.SSLWantReadError):
        session.do_handshake()
    with socket.create_connection((host, port), PROBE_TIMEOUT_S) as connection:
        try:
            connection.sendall(outgoing.read())
            return connection.recv(1)
        except ConnectionError:
            return b""
