"""A closed connection leaves no objects behind, also without the collector of cyclic garbage.

`gc.freeze` moves all present objects out of the collector's reach (`quorum/node/garbage.py`). A
connection that is part of a cycle when it closes would therefore stay in memory forever.
"""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from collections.abc import Iterator

import pytest

from quorate.quorum.clock import AsyncioClock
from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.protocol.apis import ApiKey
from quorate.quorum.rpc.kafka.server import KafkaServer, RawHandler, RequestContext
from quorate.quorum.seams import Wire
from tests.unit.rpc.kafka.test_server import METADATA, frame
from tests.unit.rpc.nets import RUNNERS, Net, on_real_nets

pytestmark = pytest.mark.timeout(20)
CLIENTS = 5
PATIENCE_S = 5.0
ROUNDS = 20
REQUEST = bytes(frame(METADATA, 9))
SIZED = len(REQUEST).to_bytes(4, "big") + REQUEST
INPUTS = {
    "nothing": b"",
    "two bytes": b"\0\0",
    "a request": SIZED,
    "half a frame": b"\0\1\0\0" + bytes(40_000),
    "a frame that is too large": b"\x7f\0\0\0",
    "no API": (8).to_bytes(4, "big") + b"\x7f\xff" + bytes(6),
    "half an HTTP head": b"GET / HTTP/1.1\r\n",
    "a WebSocket": b"GET /rpc HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\n"
    b"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
}
NAMES = ("Connection", "RequestContext", "ConnectionWork", "KafkaLink", "HttpLink", "_Sniffer")


@pytest.fixture
def uncollected() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def alive() -> Counter[str]:
    """Return the number of objects of connections.

    While the collector is disabled, all new objects are in its youngest generation."""
    names = (type(each).__name__ for each in gc.get_objects(generation=0))
    return Counter(each for each in names if each in NAMES)


@on_real_nets
@pytest.mark.parametrize(
    ("name", "handler"),
    [*((name, "answers") for name in INPUTS), ("a request", "works"), ("a request", "waits")],
)
@pytest.mark.usefixtures("uncollected")
def test_a_closed_connection_is_freed_without_the_collector(
    kind: str, name: str, handler: str
) -> None:
    waiting: list[RequestContext] = []
    ending: list[bool] = []

    def answers(context: RequestContext, body: memoryview) -> None:
        context.respond_raw(b"")

    def works(context: RequestContext, body: memoryview) -> IncrementalWork[None]:
        while not ending:
            yield
        context.respond_raw(b"")

    def waits(context: RequestContext, body: memoryview) -> None:
        waiting.append(context)

    async def scenario(net: Net) -> None:
        handlers: dict[int, RawHandler] = {ApiKey.METADATA: handlers_of[handler]}
        server = KafkaServer({}, AsyncioClock(), raw_handlers=handlers)
        listener = await net.listen(server.accept, Wire.KAFKA, Wire.NODE)
        before = alive()
        writers = []
        for _ in range(CLIENTS):
            _, writer = await asyncio.open_connection(listener.address.host, listener.address.port)
            writer.write(INPUTS[name])
            writers.append(writer)
        async with asyncio.timeout(PATIENCE_S):
            for _ in range(ROUNDS):
                await asyncio.sleep(0.001)
            for writer in writers:
                writer.transport.abort()
            ending.append(True)
            while waiting or alive() != before:
                waiting.clear()
                await asyncio.sleep(0.001)

    handlers_of: dict[str, RawHandler] = {"answers": answers, "works": works, "waits": waits}
    RUNNERS[kind](scenario)
