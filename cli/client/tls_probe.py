"""The question whether a port demands TLS, after a connection without TLS was lost.

A broker closes such a connection without an answer. A command would otherwise repeat it until its
timeout, with an error that names no remedy."""

from __future__ import annotations

import socket
from contextlib import suppress

TLS_ANSWERS = (0x15, 0x16)
"""The first byte of a server that speaks TLS: an alert, or its part of the handshake."""
PROBE_TIMEOUT_S = 1.0


def speaks_tls(host: str, port: int) -> bool:
    """Return True if the port answers the beginning of a TLS handshake. Blocks for
    PROBE_TIMEOUT_S at most, and trusts nobody."""
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    outgoing = ssl.MemoryBIO()
    session = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=host)
    with suppress(ssl.SSLWantReadError):
        session.do_handshake()
    try:
        with socket.create_connection((host, port), PROBE_TIMEOUT_S) as connection:
            connection.sendall(outgoing.read())
            answer = connection.recv(1)
    except OSError:
        return False
    return bool(answer) and answer[0] in TLS_ANSWERS
