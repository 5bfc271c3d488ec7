"""The number of connections to the console is bounded, and idle ones do not lock a page out."""

from __future__ import annotations

import asyncio

from aiohttp import ClientSession, web

from quorate.cli.console.access.connections import listening_on
from tests.unit.cli.console.readings import reading
from tests.unit.cli.console.served import Served

MOST = 4


async def test_the_oldest_connection_is_closed_for_a_new_one() -> None:
    runner = web.AppRunner(Served(reading(12), (), None).server.application(), access_log=None)
    await runner.setup()
    server = runner.server
    assert server is not None
    listening = await listening_on(server, "127.0.0.1", 0, MOST)
    host, port = listening.sockets[0].getsockname()
    idle = [await asyncio.open_connection(host, port) for _ in range(3 * MOST)]
    try:
        async with asyncio.timeout(20):
            async with ClientSession() as client, client.get(f"http://{host}:{port}/") as answer:
                assert answer.status == 200
            assert await idle[0][0].read() == b"", "it was closed"
        assert len(server.connections) <= MOST
    finally:
        for _, writer in idle:
            writer.close()
        listening.close()
        await runner.cleanup()
