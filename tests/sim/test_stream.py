"""Streams of bytes below the production frame links: parts of frames, and back-pressure."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from random import Random

import pytest

from quorate.quorum.seams import Address, Link, Wire
from tests.sim.faults.faults import Fault
from tests.sim.run import PLACES, Simulation, play, simulation
from tests.sim.scripts.staging import settled
from tests.sim.world.loop import SimLoop
from tests.sim.world.network import SimNetwork
from tests.sim.world.shape import Shape
from tests.sim.world.stream import HIGH_WATER_BYTES, KERNEL_BYTES, SimStream
from tests.sim.world.transport import SimTransport

ADDRESS = Address("server", 9092)
FRAMES = [bytes([number % 251]) * (number * 7 % 300) for number in range(200)]
LARGE = bytes(40_000)


class End:
    """A handler that keeps all frames and signals."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self.frames: list[bytes] = []
        self.drains: list[bool] = []
        self.closed = False

    def on_frame(self, frame: memoryview) -> None:
        self.frames.append(bytes(frame))

    def on_drained(self, drained: bool) -> None:
        self.drains.append(drained)

    def on_closed(self, error: Exception | None) -> None:
        self.closed = True


class Pair:
    """A client with a link to a server."""

    def __init__(self, wire: Wire, *, streams: bool = True) -> None:
        self.loop = SimLoop()
        asyncio.set_event_loop(self.loop)
        self.network = SimNetwork(self.loop, Random(1))
        self.network.streams = streams
        self.ends: list[End] = []
        server, client = self.network.boot("server"), self.network.boot("client")

        async def connect() -> None:
            listening = SimTransport(self.network, server)
            await listening.listen(ADDRESS, {wire: self._accept}, max_frame_bytes=1 << 20)
            connecting = SimTransport(self.network, client)
            await connecting.connect(
                ADDRESS, wire, self._accept, max_frame_bytes=1 << 20, timeout_ms=1000
            )

        self.loop.run(connect())
        self.server, self.client = self.ends

    def _accept(self, link: Link) -> End:
        self.ends.append(End(link))
        return self.ends[-1]

    def send(self, end: End, *frames: bytes) -> None:
        """Send the frames when the loop runs."""
        for frame in frames:
            self.loop.call_soon(end.link.send, frame)

    def run(self, seconds: float = 1.0) -> None:
        self.loop.run_for(seconds)


@pytest.fixture(params=[Wire.KAFKA, Wire.NODE])
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    made = Pair(request.param)
    yield made
    asyncio.set_event_loop(None)
    made.loop.close()


def test_frames_arrive_whole_though_their_bytes_come_in_pieces(pair: Pair) -> None:
    for frame in FRAMES:
        pair.send(pair.client, frame)
        pair.send(pair.server, frame + b"back")
        pair.run(0.0001)
    pair.run()
    assert pair.server.frames == FRAMES
    assert pair.client.frames == [each + b"back" for each in FRAMES]
    assert pair.network.pieces > 10


def test_a_narrow_kernel_takes_frames_in_parts(pair: Pair) -> None:
    path = pair.network.path("client", "server")
    path.kernel_bytes = 16
    pair.send(pair.client, *FRAMES)
    pair.run(0.0001)
    assert path.squeezed and pair.client.link.pending_bytes
    pair.run(10)
    assert pair.server.frames == FRAMES and not pair.client.link.pending_bytes


def test_a_sender_learns_that_its_peer_does_not_read(pair: Pair) -> None:
    pair.network.leave_unread("client", "server")
    count = (KERNEL_BYTES + HIGH_WATER_BYTES) // len(LARGE) + 2
    pair.send(pair.client, *[LARGE] * count)
    pair.run()
    assert pair.server.frames == [] and pair.network.path("client", "server").kept
    assert pair.client.link.pending_bytes > HIGH_WATER_BYTES
    assert pair.client.drains == [False]
    pair.network.read_again("client", "server")
    pair.run()
    assert pair.server.frames == [LARGE] * count
    assert pair.client.drains == [False, True] and not pair.client.link.pending_bytes


def test_half_of_a_frame_is_not_delivered_when_the_link_breaks(pair: Pair) -> None:
    pair.network.path("client", "server").kernel_bytes = 100
    pair.send(pair.client, LARGE)
    pair.run(0.01)
    (stream,) = [each for each in pair.network.links if each.host.name == "client"]
    assert isinstance(stream, SimStream) and 0 < stream.get_write_buffer_size() < len(LARGE)
    pair.network.break_links("client", "server")
    pair.run()
    assert pair.server.frames == [] and pair.server.closed and pair.client.closed


def test_what_was_sent_before_the_close_arrives(pair: Pair) -> None:
    pair.send(pair.client, LARGE)
    pair.loop.call_soon(pair.client.link.close)
    pair.run()
    assert pair.server.frames == [LARGE] and pair.server.closed and pair.client.closed


@pytest.mark.parametrize("streams", [True, False])
def test_what_was_sent_before_a_kill_arrives(streams: bool) -> None:
    """The kernel sends the data, also if the path is free again only after the kill. It does not if
    the process had left data unread, or if the power is gone."""
    for unread, power_loss in ((False, False), (True, False), (False, True)):
        pair = Pair(Wire.KAFKA, streams=streams)
        pair.network.block("client", "server")
        pair.send(pair.client, LARGE)
        if unread:
            pair.network.leave_unread("server", "client")
            pair.send(pair.server, b"not read")
        pair.run()
        (client,) = {each.host for each in pair.network.links if each.host.name == "client"}
        pair.network.crash(client, power_loss=power_loss)
        pair.network.unblock("client", "server")
        pair.run()
        assert pair.server.frames == ([] if unread or power_loss else [LARGE])
        assert pair.server.closed != power_loss
        asyncio.set_event_loop(None)
        pair.loop.close()


@pytest.mark.parametrize("kind", ["unread", "narrow", "slow_calls"])
def test_the_fault_has_an_effect_on_a_cluster_that_works(kind: str) -> None:
    values = {"kernel_bytes": 16.0, "longest_s": 0.01}

    async def script(stage: Simulation) -> None:
        await settled(stage)
        stage.producer("p1", PLACES)
        names = tuple(stage.cluster.machines)
        for name in names:
            fault = Fault(
                kind=kind, at_s=0.0, lasts_s=0.4, names=(name,), others=names, values=values
            )
            stage.faults.carry_out(fault)
        await stage.admin.spawn(stage.admin.create_surely("another", 1))
        await asyncio.sleep(1)
        assert stage.faults.effects.counts[kind] >= (1 if kind == "slow_calls" else 3)
        await stage.reckoning()

    with simulation(f"effect of {kind}", Shape(streams=True)) as stage:
        play(stage, script(stage))
