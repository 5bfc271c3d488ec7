"""Links over byte streams: Kafka frames, WebSocket frames and HTTP heads, in pieces of any size.

An input is a list of pieces: each has two bytes of length before it. A link gets them one after
the other; where a link closes, the rest of the input is dropped.
"""

from __future__ import annotations

import asyncio
import random
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

from quorate.quorum.rpc.http import HttpLink
from quorate.quorum.rpc.kafka_frames import KafkaLink
from quorate.quorum.rpc.websocket_frames import WebSocketLink
from quorate.quorum.seams import Link
from tests.attacks.node_frames import upgrade, web_socket
from tests.fuzz import http_heads
from tests.fuzz.target import Target
from tests.sim.world.loop import SimLoop

MAX_FRAME_BYTES = 100_000
PIECE = struct.Struct(">H")
MAX_PIECE_BYTES = 0xFFFF
REST_S = 0.01
SHORT_BYTES = 1_000
"""Only shorter inputs come in pieces of a few bytes."""
END_S = 100.0
FIRST_BYTES = (0x82, 0x81, 0x88, 0x89, 0x8A, 0x02, 0x00, 0xF2, 0xFF)


def pieces(data: bytes) -> Iterator[bytes]:
    position = 0
    while position + PIECE.size <= len(data):
        (size,) = PIECE.unpack_from(data, position)
        position += PIECE.size
        yield data[position : position + size]
        position += size


def in_pieces(data: bytes, sizes: Iterator[int]) -> bytes:
    out, position = bytearray(), 0
    while position < len(data):
        piece = data[position : position + min(MAX_PIECE_BYTES, next(sizes))]
        out += PIECE.pack(len(piece)) + piece
        position += len(piece)
    return bytes(out)


def in_list(wholes: Sequence[bytes]) -> bytes:
    """Return an input of which each piece is one of `wholes`; longer ones are left out."""
    return b"".join(PIECE.pack(len(w)) + w for w in wholes if len(w) <= MAX_PIECE_BYTES)


def some_sizes(chance: random.Random, total: int) -> Iterator[int]:
    kinds: tuple[tuple[int, ...], ...] = ((60_000,), (1, 60_000), (2_000, 7_000))
    if total < SHORT_BYTES:
        kinds = (*kinds, (1,), (1, 2, 3), (5, 100))
    kind = chance.choice(kinds)
    while True:
        yield chance.choice(kind)


class ByteTransport:
    """A transport that counts what is written and remembers that it was closed."""

    def __init__(self) -> None:
        self.closed = False
        self.written = 0
        self.protocol: Any = None

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("127.0.0.1", 1) if name in ("peername", "sockname") else default

    def write(self, data: bytes) -> None:
        self.written += len(data)

    def writelines(self, parts: Sequence[bytes]) -> None:
        self.written += sum(map(len, parts))

    def get_write_buffer_size(self) -> int:
        return 0

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def set_protocol(self, protocol: Any) -> None:
        self.protocol = protocol

    def get_protocol(self) -> Any:
        return self.protocol


class Echo:
    """A LinkHandler that answers every frame with itself."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def on_frame(self, frame: memoryview) -> None:
        self._link.send(bytes(frame[:100]))

    def on_closed(self, error: Exception | None) -> None: ...


class Listener:
    """The listener of an HttpLink. Its WebSockets end in a protocol that drops everything."""

    http = staticmethod(Echo)
    host_names = frozenset({"localhost"})

    def websocket_protocol(self) -> asyncio.Protocol:
        return asyncio.Protocol()

    def opened(self, connection: HttpLink) -> None: ...

    def gone(self, connection: HttpLink) -> None: ...


class Stream(Target):
    def __init__(
        self,
        loop: SimLoop,
        make: Callable[[], asyncio.Protocol],
        wholes: Callable[[], Iterator[bytes]],
        a_whole: Callable[[random.Random], bytes],
    ) -> None:
        self._loop = loop
        self._make = make
        self._wholes = wholes
        self._a_whole = a_whole

    def feed(self, data: bytes) -> None:
        self._loop.run(self._fed(data))

    async def _fed(self, data: bytes) -> None:
        transport = ByteTransport()
        protocol = self._make()
        transport.protocol = protocol
        protocol.connection_made(cast(asyncio.Transport, transport))
        for piece in pieces(data):
            transport.protocol.data_received(piece)
            await asyncio.sleep(REST_S)
            if transport.closed:
                break
        transport.protocol.connection_lost(None)
        await asyncio.sleep(0)

    def settle(self) -> None:
        self._loop.run_for(END_S)

    def systematic(self) -> Iterator[bytes]:
        for whole in self._wholes():
            yield in_pieces(whole, iter(lambda: MAX_PIECE_BYTES, 0))
            if len(whole) < SHORT_BYTES:
                yield in_pieces(whole, iter(lambda: 1, 0))

    def drawn(self, chance: random.Random) -> bytes:
        whole = b"".join(self._a_whole(chance) for _ in range(chance.randrange(1, 4)))
        return in_pieces(whole, some_sizes(chance, len(whole)))


def kafka_frames() -> Iterator[bytes]:
    for size in (-(2**31), -1, 0, 1, 8, MAX_FRAME_BYTES, MAX_FRAME_BYTES + 1, 2**31 - 1):
        for there in (0, 1, size - 1, size, size + 1, size + 10):
            if 0 <= there <= MAX_FRAME_BYTES + 20:
                yield struct.pack(">i", size) + bytes(there)
    yield struct.pack(">i", 3) * 10_000


def a_kafka_frame(chance: random.Random) -> bytes:
    size = chance.choice((0, 1, 7, 500, 20_000, 70_000))
    return struct.pack(">i", size + chance.choice((0, 0, 0, 0, 1, -1))) + bytes(size)


def web_sockets() -> Iterator[bytes]:
    for first in range(256):
        yield bytes((first, 0x80)) + bytes(4)
        yield bytes((0x82, first)) + bytes(300)
    for size in (0, 125, 126, 65_535, 65_536, 2**31, 2**63, 2**64 - 1):
        yield struct.pack(">BBQ", 0x82, 0x80 | 127, size) + bytes(300)
        yield struct.pack(">BBH", 0x82, 0x80 | 126, size & 0xFFFF) + bytes(300)
    yield web_socket(bytes(MAX_FRAME_BYTES))
    yield web_socket(bytes(MAX_FRAME_BYTES + 1))


def a_web_socket(chance: random.Random) -> bytes:
    size = chance.choice((0, 1, 125, 126, 70_000))
    frame = bytearray(web_socket(chance.randbytes(size), chance.choice(FIRST_BYTES)))
    if chance.random() < 0.3:
        frame[1] &= 0x7F
    if chance.random() < 0.3:
        frame[2:6] = chance.randbytes(4)
    return bytes(frame)


def heads() -> Iterator[bytes]:
    yield from http_heads.heads()
    yield upgrade_head()


def upgrade_head() -> bytes:
    from quorate.quorum.seams import Address

    return upgrade(Address("localhost", 1))


@contextmanager
def looped() -> Iterator[SimLoop]:
    loop = SimLoop()
    asyncio.set_event_loop(loop)
    try:
        yield loop
    finally:
        asyncio.set_event_loop(None)
        loop.close()


@contextmanager
def kafka_link() -> Iterator[Target]:
    with looped() as loop:
        yield Stream(
            loop, lambda: KafkaLink(cast(Any, Echo), MAX_FRAME_BYTES), kafka_frames, a_kafka_frame
        )


@contextmanager
def web_socket_link() -> Iterator[Target]:
    def make() -> asyncio.Protocol:
        link = WebSocketLink(cast(Any, Echo), MAX_FRAME_BYTES, masks=False)
        link._previous = asyncio.Protocol()
        return link

    with looped() as loop:
        yield Stream(loop, make, web_sockets, a_web_socket)


@contextmanager
def http_link() -> Iterator[Target]:
    with looped() as loop:
        yield Stream(loop, lambda: HttpLink(cast(Any, Listener())), heads, http_heads.a_head)
