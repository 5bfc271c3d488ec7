"""Large requests under memory pressure on real sockets wait for each other, and all are
answered."""

from __future__ import annotations

import asyncio

import pytest

from quorate.quorum.clock import AsyncioClock
from quorate.quorum.protocol.apis import ApiKey
from quorate.quorum.rpc.budget import Memory, MemoryLimits
from quorate.quorum.rpc.kafka.node_resources import NodeResources
from quorate.quorum.rpc.kafka.server import KafkaServer, RequestContext
from quorate.quorum.seams import Wire
from tests.unit.rpc.kafka.test_server import METADATA, frame
from tests.unit.rpc.nets import RUNNERS, Net, on_real_nets

pytestmark = pytest.mark.timeout(20)
CLIENTS = 8
REQUEST_BYTES = 1_000_000
CHUNK_BYTES = 50_000
LIMIT_BYTES = 4 << 20
PATIENCE_S = 5.0  # less than a connection without progress has


@on_real_nets
def test_requests_that_do_not_fit_together_are_read_one_after_the_other(kind: str) -> None:
    async def scenario(net: Net) -> None:
        clock = AsyncioClock()
        memory = Memory(clock, MemoryLimits(request_bytes=LIMIT_BYTES))

        def answer(context: RequestContext, body: memoryview) -> None:
            assert memory.requests.used_bytes <= LIMIT_BYTES
            context.respond_raw(b"")

        server = KafkaServer(
            {},
            clock,
            raw_handlers={ApiKey.METADATA: answer},
            resources=NodeResources(clock, memory=memory),
        )
        listener = await net.listen(server.accept, Wire.KAFKA)
        request = bytes(frame(METADATA, 9)) + bytes(REQUEST_BYTES)
        data = len(request).to_bytes(4, "big") + request

        async def ask() -> None:
            reader, writer = await asyncio.open_connection(
                listener.address.host, listener.address.port
            )
            for start in range(0, len(data), CHUNK_BYTES):
                writer.write(data[start : start + CHUNK_BYTES])
                await writer.drain()
                await asyncio.sleep(0)
            size = int.from_bytes(await reader.readexactly(4), "big")
            await reader.readexactly(size)
            writer.close()

        async with asyncio.timeout(PATIENCE_S):
            await asyncio.gather(*(ask() for _ in range(CLIENTS)))
        assert memory.requests.evicted == 0
        assert memory.requests.used_bytes == 0

    async def checked(net: Net) -> None:
        await scenario(net)
        assert not net.failures

    RUNNERS[kind](checked)
