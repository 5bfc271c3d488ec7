"""The options of listening sockets that properties set: buffers and the backlog.

Accepted connections inherit the buffers from the socket that listens.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

SYSTEM_DEFAULT = -1
"""The value of a buffer's size with which the system chooses and adapts the size."""


@dataclass(frozen=True, slots=True)
class SocketOptions:
    """The sizes of SO_SNDBUF and SO_RCVBUF in bytes, and the number of connections that may wait
    for accept."""

    send_buffer_bytes: int = SYSTEM_DEFAULT
    receive_buffer_bytes: int = SYSTEM_DEFAULT
    backlog: int = 1024

    @classmethod
    def of(cls, node: Mapping[str, Any]) -> SocketOptions:
        """Return the options from a node's typed settings (`quorate.config`)."""
        return cls(
            node["socket.send.buffer.bytes"],
            node["socket.receive.buffer.bytes"],
            node["socket.listen.backlog.size"],
        )

    def apply(self, server: asyncio.Server) -> None:
        """Set the buffers of all sockets of `server`, which does not listen yet."""
        sizes = {
            socket.SO_SNDBUF: self.send_buffer_bytes,
            socket.SO_RCVBUF: self.receive_buffer_bytes,
        }
        for bound in server.sockets:
            # The loop's own object for a socket does not set options on every event loop.
            with socket.socket(fileno=os.dup(bound.fileno())) as same:
                for option, size_bytes in sizes.items():
                    if size_bytes != SYSTEM_DEFAULT:
                        same.setsockopt(socket.SOL_SOCKET, option, size_bytes)
