"""Links of Kafka frames over a TCP connection: an int32 size, then that many bytes.

A frame is delivered as a memoryview of a bytearray of its own. Memory for a frame grows with what
has arrived, not with what its size claims. Responses given while a chunk is handled leave in one
write.
"""

from __future__ import annotations

import asyncio
import logging
import struct
from collections.abc import Callable
from typing import cast

from quorate.quorum.rpc.delivery import deliver
from quorate.quorum.seams import Accept, Address, Buffer, Link, LinkHandler, ProtocolError

logger = logging.getLogger(__name__)
SIZE = struct.Struct(">i")
SIZE_BYTES = SIZE.size
COPY_BELOW_BYTES = 16 * 1024  # smaller parts are joined: a copy is cheaper than a system call
NO_ADDRESS = Address("", 0)


def address_of(transport: asyncio.BaseTransport, name: str = "peername") -> Address:
    host, port, *_ = transport.get_extra_info(name) or ("", 0)
    return Address(host, port)


class KafkaLink(asyncio.Protocol):
    def __init__(
        self,
        accept: Accept,
        max_frame_bytes: int,
        on_gone: Callable[[Link], None] = lambda link: None,
    ) -> None:
        self.peer = NO_ADDRESS
        self.closed = False
        self._accept = accept
        self._max_frame_bytes = max_frame_bytes
        self._on_gone = on_gone
        self._transport: asyncio.Transport
        self._handler: LinkHandler
        self._input = bytearray()
        self._corked: list[Buffer] | None = None  # output while input is handled
        self._corked_bytes = 0
        self._paused = False
        self._error: Exception | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's are no subclass
        self.peer = address_of(transport)
        self._handler = self._accept(self)

    def connection_lost(self, error: Exception | None) -> None:
        self.closed = True
        self._input = bytearray()
        self._on_gone(self)
        self._handler.on_closed(self._error or error)

    def data_received(self, data: bytes) -> None:
        self._input += data
        if not self._paused:
            self._deliver()

    def send(self, *parts: Buffer) -> None:
        if self.closed:
            return
        size = sum(len(part) for part in parts)
        prefix = SIZE.pack(size)
        if self._corked is not None:
            self._corked += (prefix, *parts)
            self._corked_bytes += SIZE_BYTES + size
        else:
            self._write([prefix, *parts])

    @property
    def pending_bytes(self) -> int:
        return self._transport.get_write_buffer_size() + self._corked_bytes

    def pause_reading(self) -> None:
        if not self._paused and not self.closed:
            self._paused = True
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        if self._paused and not self.closed:
            self._paused = False
            self._transport.resume_reading()
            asyncio.get_running_loop().call_soon(self._resume)

    def close(self) -> None:
        if not self.closed:
            self._uncork()
            self.closed = True
            self._transport.close()

    def abort(self) -> None:
        self.closed = True
        self._transport.abort()

    def _resume(self) -> None:
        if not self._paused and not self.closed:
            self._deliver()

    def _deliver(self) -> None:
        """Every whole frame of the input."""
        self._corked = []
        while not self._paused and not self.closed and (frame := self._next_frame()) is not None:
            self._error = deliver(self, self._handler, frame) or self._error
        self._uncork()

    def _next_frame(self) -> memoryview | None:
        """Takes it off the input. The last frame of the input, and a large one, keep its buffer."""
        data = self._input
        if len(data) < SIZE_BYTES:
            return None
        (size,) = SIZE.unpack_from(data)
        if not 0 <= size <= self._max_frame_bytes:
            self._refuse(size)
            return None
        end = SIZE_BYTES + size
        if len(data) < end:
            return None
        if size < COPY_BELOW_BYTES and len(data) > end:
            frame = data[SIZE_BYTES:end]
            del data[:end]  # moves the start, copies nothing
            return memoryview(frame)
        self._input = data[end:]
        del data[end:]
        return memoryview(data)[SIZE_BYTES:]

    def _refuse(self, size: int) -> None:
        reason = f"a frame of {size} bytes, allowed are 0 to {self._max_frame_bytes}"
        logger.warning("closing the link to %s: %s", self.peer, reason)
        self._error = ProtocolError(reason)
        self.abort()

    def _uncork(self) -> None:
        parts, self._corked, self._corked_bytes = self._corked, None, 0
        if parts and not self.closed:
            self._write(parts)

    def _write(self, parts: list[Buffer]) -> None:
        """Large parts as they are, runs of small ones joined."""
        small: list[Buffer] = []
        for part in parts:
            if len(part) < COPY_BELOW_BYTES:
                small.append(part)
                continue
            if small:
                self._transport.write(b"".join(small))
                small = []
            self._transport.write(part)
        if small:
            self._transport.write(b"".join(small))
