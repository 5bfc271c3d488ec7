"""Properties that only real sockets show: two wires on one port, HTTP, and peers that speak
neither.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial

import aiohttp
import pytest

from quorate.quorum.rpc import transport
from quorate.quorum.rpc.http import HttpResponse
from quorate.quorum.rpc.messages import SMALL_FRAME_BYTES
from quorate.quorum.rpc.ports import free_socket
from quorate.quorum.seams import Address, Link, PeerRefused, PeerUnreachable, Wire
from tests.unit.rpc.nets import MAX_FRAME_BYTES, RUNNERS, Net, Recorder, on_real_nets

pytestmark = pytest.mark.timeout(20)

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def raw(address: Address) -> Streams:
    return await asyncio.open_connection(address.host, address.port)


async def closed_by_peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        assert await reader.read() == b""
    except ConnectionResetError:
        pass
    finally:
        writer.close()


def run(kind: str, scenario: Callable[[Net], Awaitable[None]]) -> None:
    async def checked(net: Net) -> None:
        await scenario(net)
        assert not net.failures

    RUNNERS[kind](checked)


@on_real_nets
def test_all_wires_share_a_port(kind: str) -> None:
    def answer(link: Link, target: bytes) -> None:
        link.send(HttpResponse(target, status=503).encoded())
        link.close()

    async def scenario(net: Net) -> None:
        node, kafka, http = Recorder(), Recorder(), Recorder(answer)
        listener = await net.server.listen(
            Address(net.host, 0),
            {Wire.NODE: node, Wire.KAFKA: kafka, Wire.HTTP: http},
            max_frame_bytes=MAX_FRAME_BYTES,
        )
        net.opened.append(listener)
        (await net.connect(listener.address, Wire.NODE, Recorder())).send(b"from a node")
        (await net.connect(listener.address, Wire.KAFKA, Recorder())).send(b"from a client")
        url = f"http://{listener.address}"
        get = f"{url}/healthz?say=starting"
        async with aiohttp.ClientSession() as session, session.get(get) as response:
            assert (response.status, await response.text()) == (503, "/healthz?say=starting")
            assert response.content_type == "text/plain"
        assert await http.ended() is None
        assert await node.received(1) == [b"from a node"]
        assert await kafka.received(1) == [b"from a client"]

    run(kind, scenario)


@on_real_nets
@pytest.mark.parametrize("size", [b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x00\x10\x00\x01"])
def test_a_size_that_is_not_allowed_closes_before_the_frame_comes(
    kind: str, size: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(net: Net) -> None:
        server = Recorder()
        listener = await net.listen(server, Wire.KAFKA)
        reader, writer = await raw(listener.address)
        writer.write(size)
        await closed_by_peer(reader, writer)
        await server.ended()

    caplog.set_level(logging.WARNING)
    run(kind, scenario)
    assert len([r for r in caplog.records if "closing the link" in r.message]) == 1


@on_real_nets
def test_half_a_frame_takes_no_more_memory_than_has_arrived(kind: str) -> None:
    async def scenario(net: Net) -> None:
        server = Recorder()
        listener = await net.listen(server, Wire.KAFKA)
        _, writer = await raw(listener.address)
        size = MAX_FRAME_BYTES
        writer.write(size.to_bytes(4, "big") + b"x" * 1000)
        link = await server.linked()
        await asyncio.sleep(0.01)
        assert len(link._input) == 1004  # type: ignore[attr-defined]
        assert link._input.__sizeof__() < 10_000  # type: ignore[attr-defined]
        writer.write(b"x" * (size - 1000))
        assert len((await server.received(1))[0]) == size
        writer.close()

    run(kind, scenario)


@on_real_nets
def test_frames_cut_anywhere(kind: str) -> None:
    """Return the bytes arrive one at a time, including the first bytes of a connection."""

    async def scenario(net: Net) -> None:
        server = Recorder()
        listener = await net.listen(server)
        _, writer = await raw(listener.address)
        for byte in b"\0\0\0\x03abc\0\0\0\0\0\0\0\x01z":
            writer.write(bytes([byte]))
            await asyncio.sleep(0)
        assert await server.received(3) == [b"abc", b"", b"z"]
        writer.close()
        assert await server.ended() is None

    run(kind, scenario)


@on_real_nets
def test_kafka_frames_can_be_patched_in_place_and_kept(kind: str) -> None:
    """Return the log writes batch headers into the frames, and replicates from the same memory."""

    async def scenario(net: Net) -> None:
        class Keeper(Recorder):
            def on_frame(self, frame: memoryview) -> None:
                kept.append(frame)
                frame[0:1] = b"X"
                super().on_frame(frame)

        kept: list[memoryview] = []
        server = Keeper()
        listener = await net.listen(server, Wire.KAFKA)
        _, writer = await raw(listener.address)
        writer.write(b"\0\0\0\x03one\0\0\0\x03two\0\0\x80\0" + b"-" * 0x8000 + b"\0\0\0\x04four")
        await server.received(4)
        assert [bytes(frame[:4]) for frame in kept] == [b"Xne", b"Xwo", b"X---", b"Xour"]
        writer.close()

    run(kind, scenario)


@on_real_nets
def test_answers_to_one_chunk_leave_in_one_piece(kind: str) -> None:
    async def scenario(net: Net) -> None:
        server = Recorder(lambda link, frame: link.send(frame))
        listener = await net.listen(server, Wire.KAFKA)
        reader, writer = await raw(listener.address)
        chunk = b"\0\0\0\x01a\0\0\0\x01b"
        writer.write(chunk)
        assert await reader.read(100) == chunk
        writer.close()

    run(kind, scenario)


@on_real_nets
def test_a_node_port_closes_what_does_not_speak_http(kind: str) -> None:
    """An Apache Kafka broker or a client may be configured with the wrong port."""

    async def scenario(net: Net) -> None:
        listener = await net.listen(Recorder(), Wire.NODE)
        streams = await raw(listener.address)
        streams[1].write(b"\0\0\0\x10 kafka")
        await closed_by_peer(*streams)

    run(kind, scenario)


@on_real_nets
def test_connecting_waits_no_longer_than_asked(kind: str) -> None:
    async def scenario(net: Net) -> None:
        accepted: list[asyncio.StreamWriter] = []
        silent = await asyncio.start_server(
            lambda reader, writer: accepted.append(writer), net.host, 0
        )
        address = Address(net.host, silent.sockets[0].getsockname()[1])
        with pytest.raises(PeerUnreachable):
            await net.client.connect(
                address, Wire.NODE, Recorder(), max_frame_bytes=100, timeout_ms=30
            )
        silent.close()
        accepted[0].close()
        await silent.wait_closed()
        with pytest.raises(PeerRefused):
            await net.connect(address, Wire.NODE, Recorder())

    run(kind, scenario)


@on_real_nets
def test_a_port_that_is_in_use(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quorate.quorum.rpc.transport.LISTEN_TIMEOUT_S", 0.05)
    monkeypatch.setattr("quorate.quorum.rpc.transport.LISTEN_RETRY_S", 0.01)

    async def scenario(net: Net) -> None:
        listener = await net.listen(Recorder())
        said = "in use" if kind == "sim" else "because another process listens there. Stop that "
        with pytest.raises(OSError, match=said):
            await net.listen(Recorder(), port=listener.address.port)

    run(kind, scenario)


@on_real_nets
def test_text_is_no_frame(kind: str) -> None:
    async def scenario(net: Net) -> None:
        server = Recorder()
        listener = await net.listen(server, Wire.NODE)
        async with aiohttp.ClientSession() as session:
            socket = await session.ws_connect(f"http://{listener.address}/rpc")
            await socket.send_str("hello?")
            await server.ended()
            assert "binary" in str(server.ends[0])

    run(kind, scenario)


@on_real_nets
def test_frames_of_a_foreign_client(kind: str) -> None:
    """Return the frames have a mask of their own, and pings between them. Fragments are refused."""

    async def scenario(net: Net) -> None:
        server = Recorder()
        listener = await net.listen(server, Wire.NODE)
        async with aiohttp.ClientSession() as session:
            socket = await session.ws_connect(f"http://{listener.address}/rpc", autoping=False)
            await socket.ping(b"there?")
            await socket.send_bytes(b"")
            await socket.send_bytes(b"x" * 70_001)
            assert await server.received(2) == [b"", b"x" * 70_001]
            pong = await socket.receive()
            assert (pong.type, pong.data) == (aiohttp.WSMsgType.PONG, b"there?")
            transport = socket._response.connection.transport  # type: ignore[union-attr]
            assert transport is not None
            transport.write(b"\x02\x01x")
            await server.ended()
            assert "whole" in str(server.ends[0])

    run(kind, scenario)


@on_real_nets
def test_the_first_frame_of_a_node_link_is_small(kind: str) -> None:
    """A large first frame is refused by its header, before its payload has arrived. A later frame
    may be large."""

    async def scenario(net: Net) -> None:
        server = Recorder()
        listener = await net.listen(server, Wire.NODE)
        async with aiohttp.ClientSession() as session:
            socket = await session.ws_connect(f"http://{listener.address}/rpc")
            transport = socket._response.connection.transport  # type: ignore[union-attr]
            assert transport is not None
            transport.write(b"\x82\x7f" + (SMALL_FRAME_BYTES + 1).to_bytes(8, "big"))
            await server.ended()
            assert "65537 bytes" in str(server.ends[0])
        other = Recorder()
        listener = await net.listen(other, Wire.NODE)
        async with aiohttp.ClientSession() as session:
            socket = await session.ws_connect(f"http://{listener.address}/rpc")
            await socket.send_bytes(bytes(SMALL_FRAME_BYTES))
            await socket.send_bytes(bytes(SMALL_FRAME_BYTES + 1))
            assert len((await other.received(2))[1]) == SMALL_FRAME_BYTES + 1

    run(kind, scenario)


@on_real_nets
def test_a_newcomer_gets_in_while_silent_connections_hold_all_places(
    kind: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(transport, "MAX_UNIDENTIFIED", 20)

    def answer(link: Link, target: bytes) -> None:
        link.send(HttpResponse(target).encoded())
        link.close()

    async def scenario(net: Net) -> None:
        listener = await net.server.listen(
            Address(net.host, 0),
            {Wire.NODE: Recorder(), Wire.KAFKA: Recorder(), Wire.HTTP: Recorder(answer)},
            max_frame_bytes=MAX_FRAME_BYTES,
        )
        net.opened.append(listener)
        silent = []
        for number in range(60):
            reader, writer = await raw(listener.address)
            writer.write(b"GET / HTTP/1.1\r\nHost: " if number % 2 else b"")
            silent.append((reader, writer))
        reader, writer = await raw(listener.address)
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: %s\r\n\r\n" % net.host.encode())
        assert b"200" in await reader.read()
        writer.close()
        await closed_by_peer(*silent[0])
        for _, each in silent:
            each.close()

    run(kind, scenario)
    assert caplog.text.count("that have not sent a request") == 1, "one line for all of them"


@on_real_nets
def test_a_port_that_becomes_free_is_listened_on(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quorate.quorum.rpc.transport.LISTEN_RETRY_S", 0.01)

    async def scenario(net: Net) -> None:
        taken = free_socket(net.host)
        taken.listen()
        port = taken.getsockname()[1]
        asyncio.get_running_loop().call_later(0.05, taken.close)
        listener = await net.listen(Recorder(), Wire.KAFKA, port=port)
        assert listener.address.port == port

    run(kind, scenario)


@on_real_nets
@pytest.mark.parametrize("wire", [Wire.KAFKA, Wire.NODE])
def test_a_connection_that_met_itself_is_no_link(
    kind: str, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(net: Net) -> None:
        with free_socket(net.host) as found:
            port = found.getsockname()[1]
        loop = asyncio.get_running_loop()
        if wire is Wire.KAFKA:  # the kernel gives it this port, as it may in the ephemeral range
            own = partial(loop.create_connection, local_addr=(net.host, port))
            monkeypatch.setattr(loop, "create_connection", own, raising=False)
        handler = Recorder()
        with pytest.raises(PeerRefused):
            await net.connect(Address(net.host, port), wire, handler)
        await asyncio.sleep(0.01)
        assert not handler.ends
        assert not handler.frames
        if wire is Wire.KAFKA:
            monkeypatch.undo()
        await net.listen(Recorder(), wire, port=port)

    run(kind, scenario)
