"""Ports of this machine in place of the addresses of all machines and containers."""

from __future__ import annotations

import re
import socket

MOST = 40
"""The most addresses of one set of machines."""


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


class Addresses:
    """Each address (host, port) has a port of its own."""

    def __init__(self) -> None:
        self._ports: dict[tuple[str, str], int] = {}
        self._free = iter(free_ports(MOST))

    def port(self, host: str, port: str) -> int:
        """Return the port in place of an address, and choose it if the address is new."""
        if (host, port) not in self._ports:
            self._ports[host, port] = next(self._free)
        return self._ports[host, port]

    def translated(self, own: str, text: str) -> str:
        """Return `text` with all addresses as 127.0.0.1:port. `own` is the name of the host that
        listens on 0.0.0.0."""

        def local(match: re.Match[str]) -> str:
            host, port = match[1], match[2]
            return f"127.0.0.1:{self.port(own if host in ('0.0.0.0', 'localhost') else host, port)}"

        return re.sub(r"([\w.-]+):(\d{4,5})\b", local, text)
