"""The contract of `seams.Transport`, as scenarios that run on every implementation."""

from __future__ import annotations

import asyncio

import pytest

from quorate.quorum.seams import Address, Link, PeerRefused, PeerUnreachable, ProtocolError, Wire
from tests.unit.rpc.nets import MAX_FRAME_BYTES, Net, Recorder

EDGE_SIZES = (0, 1, 3, 125, 126, 16_383, 16_384, 65_535, 65_536, 300_000, MAX_FRAME_BYTES)


async def pair(net: Net, wire: Wire) -> tuple[Recorder, Recorder, Address]:
    """Return the handlers of a new link: the server's and the client's."""
    server, client = Recorder(), Recorder()
    listener = await net.listen(server)
    (await net.connect(listener.address, wire, client)).send(b"hello")
    assert await server.received(1) == [b"hello"]
    server.frames.clear()
    return server, client, listener.address


async def frames_arrive_whole_and_in_order(net: Net, wire: Wire) -> None:
    server, client, _ = await pair(net, wire)
    frames = [bytes([i]) * size for i, size in enumerate(EDGE_SIZES)] * 2
    for frame in frames:
        half = len(frame) // 2
        client.link.send(frame[:half], memoryview(frame)[half:])
        server.link.send(bytearray(frame))
    assert await server.received(len(frames)) == frames
    assert await client.received(len(frames)) == frames


async def many_small_frames(net: Net, wire: Wire) -> None:
    server, client, _ = await pair(net, wire)
    frames = [b"%d" % i for i in range(20_000)]
    for frame in frames:
        client.link.send(frame)
    assert await server.received(len(frames)) == frames


async def closing_delivers_what_was_sent(net: Net, wire: Wire) -> None:
    server, client, _ = await pair(net, wire)
    client.link.send(b"x" * 500_000)
    client.link.send(b"last")
    client.link.close()
    assert not client.ends, "never inside the call"
    assert client.link.closed
    assert await server.ended() is None
    assert [len(frame) for frame in server.frames] == [500_000, 4]
    assert await client.ended() is None


async def the_end_comes_once(net: Net, wire: Wire) -> None:
    server, client, _ = await pair(net, wire)
    server.link.abort()
    server.link.abort()
    server.link.close()
    await client.ended()
    await server.ended()
    client.link.close()
    client.link.abort()
    server.link.send(b"into the void")
    client.link.send(b"into the void")
    await asyncio.sleep(0.01)
    assert len(server.ends) == len(client.ends) == 1
    assert server.frames == client.frames == []
    assert server.link.pending_bytes == client.link.pending_bytes == 0


async def closing_from_within_on_frame(net: Net, wire: Wire) -> None:
    def close(link: Link, frame: bytes) -> None:
        link.send(b"answer")
        link.close()
        assert not server.ends, "never inside the call"

    server, client = Recorder(close), Recorder()
    listener = await net.listen(server)
    link = await net.connect(listener.address, wire, client)
    link.send(b"first")
    link.send(b"second")
    await client.ended()
    assert client.frames == [b"answer"]
    await server.ended()
    assert server.frames == [b"first"]


async def nobody_listens(net: Net, wire: Wire) -> None:
    listener = await net.listen(Recorder())
    address = listener.address
    await listener.close()
    with pytest.raises(PeerRefused):
        await net.connect(address, wire, Recorder())


async def a_wire_that_is_not_spoken(net: Net, wire: Wire) -> None:
    other = Wire.KAFKA if wire is Wire.NODE else Wire.NODE
    handler = Recorder()
    listener = await net.listen(handler, other)
    client = Recorder()
    if wire is Wire.KAFKA:  # a listener recognizes the protocol by the first bytes
        try:
            (await net.connect(listener.address, wire, client)).send(b"hello")
        except PeerUnreachable:
            return
        await client.ended()
    else:
        with pytest.raises(PeerUnreachable):
            await net.connect(listener.address, wire, client)
    assert not handler.frames


async def too_large_a_frame(net: Net, wire: Wire) -> None:
    server, client, address = await pair(net, wire)
    bystander = Recorder()
    (await net.connect(address, wire, bystander)).send(b"fine")
    client.link.send(bytes(MAX_FRAME_BYTES + 1))
    await client.ended()
    await server.until(lambda server: bool(server.ends) and bool(server.frames))
    assert isinstance(server.ends[0], ProtocolError)
    assert server.frames == [b"fine"]
    assert not bystander.ends


async def the_handler_objects(net: Net, wire: Wire) -> None:
    def refuse(link: Link, frame: bytes) -> None:
        raise ProtocolError("that is not allowed")

    server, client = Recorder(refuse), Recorder()
    listener = await net.listen(server)
    link = await net.connect(listener.address, wire, client)
    link.send(b"one")
    link.send(b"two")
    await client.ended()
    assert isinstance(await server.ended(), ProtocolError)
    assert server.frames == [b"one"]
    assert not net.failures


async def the_handler_fails(net: Net, wire: Wire) -> None:
    def fail(link: Link, frame: bytes) -> None:
        raise AssertionError("a broken invariant")

    server, client = Recorder(fail), Recorder()
    listener = await net.listen(server)
    (await net.connect(listener.address, wire, client)).send(b"one")
    await client.ended()
    assert isinstance(await server.ended(), AssertionError)
    assert [str(failure) for failure in net.failures] == ["a broken invariant"]
    net.failures.clear()


async def paused_reading_holds_frames_back(net: Net, wire: Wire) -> None:
    server, client, _ = await pair(net, wire)
    assert client.link.pending_bytes == 0
    server.link.pause_reading()
    frames = [bytes([i % 256]) * 100_000 for i in range(200)]  # more than kernels buffer
    for frame in frames:
        client.link.send(frame)
    await asyncio.sleep(0.05)
    assert server.frames == []
    assert client.link.pending_bytes > MAX_FRAME_BYTES
    server.link.resume_reading()
    assert await server.received(len(frames)) == frames
    await asyncio.sleep(0.05)
    assert client.link.pending_bytes == 0


async def pausing_from_within_on_frame(net: Net, wire: Wire) -> None:
    server, client = Recorder(lambda link, frame: link.pause_reading()), Recorder()
    listener = await net.listen(server)
    link = await net.connect(listener.address, wire, client)
    for frame in (b"one", b"two", b"three"):
        link.send(frame)
    for count in (1, 2, 3):
        await server.received(count)
        await asyncio.sleep(0.01)
        assert len(server.frames) == count
        server.link.resume_reading()


async def closing_the_listener_aborts_its_links(net: Net, wire: Wire) -> None:
    server, client = Recorder(), Recorder()
    listener = await net.listen(server)
    (await net.connect(listener.address, wire, client)).send(b"hello")
    await server.linked()
    await listener.close()
    await client.ended()
    await server.ended()
    with pytest.raises(PeerRefused):
        await net.connect(listener.address, wire, Recorder())
    again = await net.listen(Recorder(), port=listener.address.port)
    await again.close()


SCENARIOS = (
    frames_arrive_whole_and_in_order,
    many_small_frames,
    closing_delivers_what_was_sent,
    the_end_comes_once,
    closing_from_within_on_frame,
    nobody_listens,
    a_wire_that_is_not_spoken,
    too_large_a_frame,
    the_handler_objects,
    the_handler_fails,
    paused_reading_holds_frames_back,
    pausing_from_within_on_frame,
    closing_the_listener_aborts_its_links,
)
