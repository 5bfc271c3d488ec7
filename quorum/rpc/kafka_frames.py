"""Links of Kafka frames over a TCP connection: an int32 size, then that many bytes.

A frame is delivered as a memoryview of a bytearray of its own. The memory for a frame grows with
the bytes that have arrived, not with the size that its prefix claims.

Outgoing frames are joined to save system calls. Frames that are sent while the received frames are
delivered leave together, after the delivery. Of the frames sent at another time, the first leaves
immediately, and the others of the same loop iteration leave together. Parts of COPY_BELOW_BYTES or
more are written without a copy.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable

from quorate.quorum.rpc.frame_link import COPY_BELOW_BYTES, FrameLink
from quorate.quorum.seams import Accept, Buffer, Link

SIZE = struct.Struct(">i")
SIZE_BYTES = SIZE.size
TLS_RECORD = b"\x16\x03"
"""The first bytes of a TLS handshake. As a size they are 369 MB."""
TLS_HINT = ". It began a TLS handshake: does it use security.protocol=SSL on a PLAINTEXT listener?"


class KafkaLink(FrameLink):
    """A link of Kafka frames, at the server or at the client. The event loop owns it."""

    def __init__(
        self,
        accept: Accept,
        max_frame_bytes: int,
        on_gone: Callable[[Link], None] = lambda link: None,
    ) -> None:
        """Create the protocol of a new connection. A frame of more than `max_frame_bytes` closes
        it."""
        super().__init__(accept, max_frame_bytes, on_gone)
        self._corked: list[Buffer] | None = None  # held back output; None: the next frame leaves
        self._corked_bytes = 0

    def send(self, *parts: Buffer) -> None:
        """Send one frame of `parts`, or hold it back as the module describes. Drop it if the link
        is closed."""
        if self.closed:
            return
        size = sum(len(part) for part in parts)
        prefix = SIZE.pack(size)
        if self._corked is not None:
            self._corked += (prefix, *parts)
            self._corked_bytes += SIZE_BYTES + size
        else:
            self._write([prefix, *parts])
            self._corked = []
            asyncio.get_running_loop().call_soon(self._uncork)

    @property
    def pending_bytes(self) -> int:
        """Return the bytes that are sent or held back, and not yet accepted by the socket."""
        return super().pending_bytes + self._corked_bytes

    def close(self) -> None:
        """Write what is held back, then close the link."""
        if not self.closed:
            self._uncork()
            self.closed = True
            self._transport.close()

    def _deliver(self) -> None:
        if self._corked is None:
            self._corked = []
        super()._deliver()
        self._uncork()

    def _next_frame(self) -> memoryview | None:
        data = self._input
        if len(data) < SIZE_BYTES:
            return None
        (size,) = SIZE.unpack_from(data)
        if not 0 <= size <= self._max_frame_bytes:
            hint = TLS_HINT if data.startswith(TLS_RECORD) else ""
            most = self._max_frame_bytes
            self._refuse(f"a frame of {size} bytes, allowed are 0 to {most}{hint}")
            return None
        end = SIZE_BYTES + size
        return memoryview(self._take(SIZE_BYTES, end)) if len(data) >= end else None

    def _uncork(self) -> None:
        parts, self._corked, self._corked_bytes = self._corked, None, 0
        if parts and not self.closed:
            self._write(parts)

    def _write(self, parts: list[Buffer]) -> None:
        """Write large parts as they are, and join runs of small parts.

        A write may close the link, because the peer does not take enough."""
        small: list[Buffer] = []
        for part in parts:
            if len(part) < COPY_BELOW_BYTES:
                small.append(part)
                continue
            if small:
                self._transport.write(b"".join(small))
                small = []
            if self.closed:
                return
            self._transport.write(part)
        if small and not self.closed:
            self._transport.write(b"".join(small))
