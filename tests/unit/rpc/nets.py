"""The transports under test, each on its own kind of event loop, with a server's and a client's
end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from random import Random

import pytest
import uvloop

from quorate.quorum.faults.faults import Faults
from quorate.quorum.faults.transport import FaultTransport
from quorate.quorum.rpc.transport import AioTransport
from quorate.quorum.seams import Address, Link, LinkHandler, Listener, Transport, Wire
from tests.sim.world.loop import SimLoop
from tests.sim.world.network import SimNetwork
from tests.sim.world.transport import SimTransport

PATIENCE_S = 5.0
MAX_FRAME_BYTES = 1024 * 1024
LINKED = (Wire.NODE, Wire.KAFKA)


@dataclass
class Net:
    """Both ends, and the failures that reach only the loop's exception handler."""

    server: Transport
    client: Transport
    host: str
    failures: list[BaseException] = field(default_factory=list)
    opened: list[Listener] = field(default_factory=list)

    async def listen(
        self, accept: Callable[[Link], LinkHandler], *wires: Wire, port: int = 0
    ) -> Listener:
        listener = await self.server.listen(
            Address(self.host, port),
            dict.fromkeys(wires or LINKED, accept),
            max_frame_bytes=MAX_FRAME_BYTES,
        )
        self.opened.append(listener)
        return listener

    async def connect(
        self, address: Address, wire: Wire, accept: Callable[[Link], LinkHandler]
    ) -> Link:
        return await self.client.connect(
            address, wire, accept, max_frame_bytes=MAX_FRAME_BYTES, timeout_ms=2000
        )

    async def close(self) -> None:
        """Close both ends, and let the other ends of the links, in this same loop, notice it."""
        for listener in self.opened:
            await listener.close()
        for _ in range(10):
            await asyncio.sleep(0.001)


Scenario = Callable[[Net], Awaitable[None]]


def named() -> Transport:
    return AioTransport(["Broker-1.example."])


def run_aio(
    scenario: Scenario,
    new_loop: Callable[[], asyncio.AbstractEventLoop],
    new_transport: Callable[[], Transport] = named,
) -> None:
    async def run() -> None:
        net = Net(new_transport(), new_transport(), "127.0.0.1")
        asyncio.get_running_loop().set_exception_handler(
            lambda loop, context: net.failures.append(context["exception"])
        )
        try:
            await scenario(net)
        finally:
            await net.close()

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(run())


def behind_faults() -> Transport:
    """Real sockets behind the fault wrappers, without an active fault."""
    return FaultTransport(AioTransport(), Faults())


def run_sim(scenario: Scenario) -> None:
    loop = SimLoop()
    network = SimNetwork(loop, Random(1))
    server, client = network.boot("server"), network.boot("client")
    net = Net(SimTransport(network, server), SimTransport(network, client), "server", loop.failures)

    async def run() -> None:
        await scenario(net)

    try:
        loop.run_until_complete(client.spawn(run()))
    finally:
        loop.close()


RUNNERS: dict[str, Callable[[Scenario], None]] = {
    "asyncio": lambda scenario: run_aio(scenario, asyncio.new_event_loop),
    "uvloop": lambda scenario: run_aio(scenario, uvloop.new_event_loop),
    "sim": run_sim,
    "faults": lambda scenario: run_aio(scenario, uvloop.new_event_loop, behind_faults),
}

on_every_net = pytest.mark.parametrize("kind", RUNNERS)
on_real_nets = pytest.mark.parametrize("kind", ["asyncio", "uvloop"])


class Recorder:
    """A LinkHandler that records its calls. `until` waits for more of them."""

    link: Link

    def __init__(self, react: Callable[[Link, bytes], None] | None = None) -> None:
        self.frames: list[bytes] = []
        self.ends: list[Exception | None] = []
        self._react = react
        self._news = asyncio.Event()

    def __call__(self, link: Link) -> Recorder:
        self.link = link
        self._news.set()
        return self

    def on_frame(self, frame: memoryview) -> None:
        assert not self.ends, "a frame after the end"
        self.frames.append(bytes(frame))
        self._news.set()
        if self._react is not None:
            self._react(self.link, bytes(frame))

    def on_closed(self, error: Exception | None) -> None:
        self.ends.append(error)
        self._news.set()

    async def until(self, condition: Callable[[Recorder], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not condition(self):
                self._news.clear()
                await self._news.wait()

    async def linked(self) -> Link:
        await self.until(lambda self: hasattr(self, "link"))
        return self.link

    async def ended(self) -> Exception | None:
        await self.until(lambda self: bool(self.ends))
        return self.ends[0]

    async def received(self, count: int) -> list[bytes]:
        await self.until(lambda self: len(self.frames) >= count)
        return self.frames
