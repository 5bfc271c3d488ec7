"""Ports of this machine: free ports for listeners, and detection of self-connections.

The kernel gives outgoing connections ports of the ephemeral range. If a client keeps connecting to
a port of that range on its own machine and no process listens there, the kernel eventually gives it
that port. TCP then connects the socket to itself, and the port is taken. `free_socket` therefore
chooses ports outside of the range. `transport.py` drops a self-connection of this node's Kafka
client.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Iterator
from pathlib import Path
from random import SystemRandom

EPHEMERAL_FILE = Path("/proc/sys/net/ipv4/ip_local_port_range")
"""The file in which Linux shows the ephemeral range."""
EPHEMERAL_ELSEWHERE = range(49152, 65536)
"""The range of IANA, used on systems without EPHEMERAL_FILE."""
PLACES = range(10_000, 65_536)
"""The ports to choose from. Many ports below 10,000 belong to known services."""
TRIES = 1000
"""Number of random ports that `free_socket` tries before it lets the kernel choose one."""
RESET_ON_CLOSE = struct.pack("ii", 1, 0)
"""The value of SO_LINGER with which a close sends a reset."""


def ephemeral_ports() -> range:
    """Return the ports that this machine gives to outgoing connections."""
    try:
        low, high = EPHEMERAL_FILE.read_text().split()
        return range(int(low), int(high) + 1)
    except (OSError, ValueError):
        return EPHEMERAL_ELSEWHERE


def free_socket(host: str) -> socket.socket:
    """Return a socket bound to a free port of `host`, an IPv4 address or name of this machine.

    The socket does not listen. The caller closes it, and then a listener can use the port. Another
    process may take the port in between. The port is outside of the ephemeral range. If TRIES
    random ports of PLACES are all taken, the kernel chooses the port instead. Raise OSError if
    `host` is no address of this machine or has no free port."""
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
    """Close a self-connection with a reset.

    Its port is then free immediately. A normal close would leave it in TIME_WAIT for a minute."""
    found = transport.get_extra_info("socket")
    if found is not None:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
    transport.abort()


def is_self_connected(transport: asyncio.BaseTransport) -> bool:
    """Return True if both ends of a connection are the same socket. Return False if the connection
    is already closed."""
    own = transport.get_extra_info("sockname")
    return own is not None and own == transport.get_extra_info("peername")
