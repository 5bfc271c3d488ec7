"""Links of WebSocket frames (RFC 6455) over a connection whose handshake is complete.

aiohttp makes the handshake. Then this module reads the bytes of the connection, because the reader
of aiohttp costs a future, a task step and a loop iteration for every frame. One binary message is
one frame, never fragmented and never compressed, because the other end is a node. A client masks
its frames with the key 0, which changes nothing. Masks prevent scripts in browsers from attacking
proxies, and neither exists here.

The first frame of a link belongs to the handshake of the nodes. A header that announces more than
SMALL_FRAME_BYTES closes the link. Later frames have the bound of the link.

Nodes send no pings. A foreign client may send some, but MAX_CONTROL_FRAMES in a row close the link,
because they are handled without a pause. A ping has no answer while the peer does not read, because
no budget counts the answers (RFC 6455, section 5.5.3, permits to answer only the last one).
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from typing import cast

from quorate.quorum.rpc.frame_link import REPORT_ABOVE_BYTES, FrameLink
from quorate.quorum.rpc.messages import SMALL_FRAME_BYTES
from quorate.quorum.seams import Accept, Buffer, Link

BINARY, CLOSE, PING, PONG = 0x82, 0x88, 0x89, 0x8A  # each the first byte of a final frame
TEXT = 0x81
MAX_CONTROL_FRAMES = 100
"""Control frames that may arrive together, without a message between them."""
MAX_MASKED_BYTES = 1 << 20
"""Maximum size of a frame with another mask than 0. To remove one takes 3 ms for 1 MiB."""
MASKED = 0x80
MASK_BYTES = 4
NO_MASK = bytes(MASK_BYTES)
GOING_AWAY = (1001).to_bytes(2, "big")
LARGEST_SHORT, SIZE_16, SIZE_64 = 125, 126, 127  # the second byte: a size, or its position
HEADER_16 = struct.Struct(">BBH")
HEADER_64 = struct.Struct(">BBQ")


class WebSocketLink(FrameLink):
    """A link of WebSocket frames, at the server or at the client. The event loop owns it."""

    def __init__(
        self,
        accept: Accept,
        max_frame_bytes: int,
        on_gone: Callable[[Link], None] = lambda link: None,
        *,
        masks: bool,
    ) -> None:
        """Create a link. A client sets `masks`, because RFC 6455 requires it.

        The attribute `gone` is a future that completes when the connection is lost."""
        super().__init__(accept, max_frame_bytes, on_gone)
        self._allowed_bytes = min(max_frame_bytes, SMALL_FRAME_BYTES)
        self.gone = asyncio.get_running_loop().create_future()
        self.keeper: asyncio.Task[None] | None = None  # a loop refers to its tasks only weakly
        self._mask = NO_MASK if masks else b""
        self._masked = MASKED if masks else 0
        self._previous: asyncio.Protocol

    def take_over(self, transport: asyncio.Transport) -> None:
        """Replace the protocol that made the handshake. That protocol is notified when the
        connection ends."""
        self._previous = cast(asyncio.Protocol, transport.get_protocol())
        transport.set_protocol(self)
        self.connection_made(transport)

    def connection_lost(self, error: Exception | None) -> None:
        """Report the end to the earlier protocol and to the handler. asyncio calls this method."""
        if not self.gone.done():
            self.gone.set_result(None)
        self._previous.connection_lost(error)
        super().connection_lost(error)

    def send(self, *parts: Buffer) -> None:
        """Send one frame of `parts`, unless the link is closed."""
        if not self.closed:
            self._write(BINARY, *parts)

    def close(self) -> None:
        """Send a close frame after the queued frames, then close the connection. Do not wait for
        the peer's close frame."""
        if not self.closed:
            self._write(CLOSE, GOING_AWAY)
            self.closed = True
            self._transport.close()

    def _write(self, first: int, *parts: Buffer) -> None:
        size = sum(map(len, parts))
        if size <= LARGEST_SHORT:
            header = bytes((first, self._masked | size))
        elif size < 1 << 16:
            header = HEADER_16.pack(first, self._masked | SIZE_16, size)
        else:
            header = HEADER_64.pack(first, self._masked | SIZE_64, size)
        self._transport.write(b"".join((header, self._mask, *parts)))

    def _next_frame(self) -> memoryview | None:
        control_frames = 0
        while (found := self._next_message()) is not None:
            first, payload = found
            if first == BINARY:
                # The first frame is the nodes' handshake. If it is refused, the link closes.
                self._allowed_bytes = self._max_frame_bytes
                return payload
            control_frames += 1
            if control_frames > MAX_CONTROL_FRAMES:
                self._refuse(f"more than {MAX_CONTROL_FRAMES} control frames in a row")
                return None
            self._control(first, payload)
        return None

    def _next_message(self) -> tuple[int, memoryview] | None:
        data = self._input
        if self.closed or len(data) < 2:
            return None
        first, second = data[0], data[1]
        size, start = second & ~MASKED, 2
        if size > LARGEST_SHORT:
            header = HEADER_16 if size == SIZE_16 else HEADER_64
            if len(data) < header.size:
                return None
            size, start = header.unpack_from(data)[2], header.size
        if size > self._allowed_bytes:
            self._refuse(f"a frame of {size} bytes, allowed are 0 to {self._allowed_bytes}")
            return None
        key = b""
        if second & MASKED:
            key = bytes(data[start : start + MASK_BYTES])
            start += MASK_BYTES
            if size > MAX_MASKED_BYTES and len(key) == MASK_BYTES and key != NO_MASK:
                self._refuse(f"a frame of {size} bytes that is masked, not by a node")
                return None
        if len(data) < start + size:
            return None
        payload = memoryview(self._take(start, start + size))
        return first, unmasked(payload, key) if key != NO_MASK and key else payload

    def _control(self, first: int, payload: memoryview) -> None:
        if len(payload) > LARGEST_SHORT:
            self._refuse(f"a control frame of {len(payload)} bytes")
        elif first == CLOSE:
            self.abort()
        elif first == PING:
            if self.pending_bytes <= REPORT_ABOVE_BYTES:
                self._write(PONG, payload)
        elif first == TEXT:
            self._refuse("a text message; frames are binary")
        elif first != PONG:
            self._refuse(f"a WebSocket frame that starts with {first:#x}: no whole binary message")


def unmasked(payload: memoryview, key: bytes) -> memoryview:
    """Return `payload` without the mask `key` of a foreign client."""
    size = len(payload)
    mask = (key * (size // MASK_BYTES + 1))[:size]
    plain = int.from_bytes(payload, "big") ^ int.from_bytes(mask, "big")
    return memoryview(plain.to_bytes(size, "big"))
