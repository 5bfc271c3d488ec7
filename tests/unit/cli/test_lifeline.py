"""The lifeline of a cluster: its end stops the cluster, and its bytes do not."""

from __future__ import annotations

import asyncio
import os

from quorate.cli.nodes.lifeline import watch_lifeline


async def test_the_end_of_the_pipe_stops_the_cluster() -> None:
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    reading, writing = os.pipe()
    said: list[str] = []
    loop.add_reader(reading, watch_lifeline, reading, loop, stop, said.append)
    try:
        os.write(writing, b"alive")
        await asyncio.sleep(0.01)
        assert not stop.is_set()
        os.close(writing)
        async with asyncio.timeout(20):
            await stop.wait()
        assert said == ["standard input has ended: stopping"]
        assert not loop.remove_reader(reading), "it is not read any more"
    finally:
        os.close(reading)
