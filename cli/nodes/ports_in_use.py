"""Refuses to start nodes whose ports other processes use."""

from __future__ import annotations

import errno
import socket
import time
from collections.abc import Mapping

from quorate.cli.client.errors import Refused

PATIENCE_S = 2.0
"""A process that has just ended may hold its port for a moment."""
POLL_S = 0.05


def require_free(ports: Mapping[tuple[str, int], str], *, option: str = "--port") -> None:
    """Raise Refused, which names the port, if one of the ports is in use for PATIENCE_S.

    The keys are (host, port), and the values name the users, such as "broker 4". `option` sets the
    ports."""
    deadline_s = time.monotonic() + PATIENCE_S
    for (host, port), user in ports.items():
        while is_in_use(host, port):
            if time.monotonic() >= deadline_s:
                raise Refused(
                    f"port {port} on {host or 'any address'} is in use by another process, and "
                    f"{user} needs it. Nothing was started. Stop that process, or choose "
                    f"another one with {option} (0: a free port)"
                )
            time.sleep(POLL_S)


def is_in_use(host: str, port: int) -> bool:
    """Return True if another process listens on this port. An address that this machine does not
    have is left to the node, which reports it."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            return error.errno == errno.EADDRINUSE
        return False
