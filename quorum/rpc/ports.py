"""Ports of this machine: free ones for listeners, and connections that met themselves.

The kernel gives outgoing connections ports of the ephemeral range. A client that keeps connecting
to a port of that range on its own machine, while no process listens there, is given that very port
sooner or later. TCP then connects the socket to itself, and the port is taken. Listeners are
therefore placed outside of the range, and a connection to itself is dropped.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Iterator
from pathlib import Path
from random import SystemRandom

EPHEMERAL_FILE = Path("/proc/sys/net/ipv4/ip_local_port_range")
EPHEMERAL_ELSEWHERE = range(49152, 65536)
"""IANA's range, which the other systems use."""
PLACES = range(10_000, 65_536)
"""Ports to choose from: those below are often those of known services."""
TRIES = 1000
RESET_ON_CLOSE = struct.pack("ii", 1, 0)


def ephemeral_ports() -> range:
    """Return the ports that this machine gives to outgoing connections."""
    try:
        low, high = EPHEMERAL_FILE.read_text().split()
        return range(int(low), int(high) + 1)
    except (OSError, ValueError):
        return EPHEMERAL_ELSEWHERE


def free_socket(host: str) -> socket.socket:
    """Return a socket that is bound to a free port of `host`, outside of the ephemeral range unless
    that leaves no room. The port is free for a listener once the socket is closed."""
    for port in _candidates():
        found = socket.socket()
        try:
            found.bind((host, port))
        except OSError:
            found.close()
        else:
            return found
    found = socket.socket()
    found.bind((host, 0))
    return found


def _candidates() -> Iterator[int]:
    ephemeral = ephemeral_ports()
    outside = [port for port in PLACES if port not in ephemeral]
    yield from SystemRandom().sample(outside, min(TRIES, len(outside)))


def drop(transport: asyncio.Transport) -> None:
    """Close a connection that met itself by a reset, so that its port is free immediately instead
    of in TIME_WAIT for a minute."""
    found = transport.get_extra_info("socket")
    if found is not None:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
    transport.abort()


def is_self_connected(transport: asyncio.BaseTransport) -> bool:
    """Return True if the two ends of a connection are one socket."""
    own = transport.get_extra_info("sockname")
    return own is not None and own == transport.get_extra_info("peername")
