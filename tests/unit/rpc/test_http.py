"""Plain HTTP on a listening port: the bounds of what outsiders may hold, and for how long."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Awaitable, Callable

import pytest

from quorate.quorum.rpc import http
from quorate.quorum.rpc.http import HttpResponse
from quorate.quorum.seams import Accept, Address, Link, Listener, Wire
from tests.unit.rpc.nets import MAX_FRAME_BYTES, RUNNERS, Net, Recorder, on_real_nets

pytestmark = pytest.mark.timeout(20)


def run(kind: str, scenario: Callable[[Net], Awaitable[None]]) -> None:
    async def checked(net: Net) -> None:
        await scenario(net)
        assert not net.failures

    RUNNERS[kind](checked)


async def listening(net: Net, handler: Recorder, *others: Wire) -> Listener:
    accept = {Wire.HTTP: handler, **dict.fromkeys(others, Recorder())}
    listener = await net.server.listen(
        Address(net.host, 0), accept, max_frame_bytes=MAX_FRAME_BYTES
    )
    net.opened.append(listener)
    return listener


async def said(listener: Listener, *chunks: bytes) -> bytes:
    """Return everything that arrives until the other end closes."""
    reader, writer = await asyncio.open_connection(listener.address.host, listener.address.port)
    try:
        for chunk in chunks:
            writer.write(chunk)
            await asyncio.sleep(0)
        return await reader.read()
    except ConnectionResetError:
        return b"reset"
    finally:
        writer.close()


def echo(link: Link, target: bytes) -> None:
    link.send(HttpResponse(target).encoded())
    link.close()


@on_real_nets
def test_a_get_cut_anywhere_is_answered_once(kind: str) -> None:
    async def scenario(net: Net) -> None:
        handler = Recorder(echo)
        listener = await listening(net, handler)
        request = b"GET /x HTTP/1.1\r\nHost: localhost\r\n\r"
        cut = [request[i : i + 1] for i in range(len(request))]
        answer = await said(listener, *cut, b"\nGET /again HTTP/1.1\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
        assert answer.endswith(b"\r\n\r\n/x")
        assert handler.frames == [b"/x"]

    run(kind, scenario)


class Page:
    """Answers a request, and refers to its link as the real handler does."""

    def __init__(self, link: Link) -> None:
        self.link = link

    def on_frame(self, frame: memoryview) -> None:
        echo(self.link, bytes(frame))

    def on_closed(self, error: Exception | None) -> None:
        pass


@on_real_nets
def test_a_closed_connection_is_freed_without_the_collector(kind: str) -> None:
    """See tests/unit/rpc/kafka/test_closed_connections.py."""
    pages: list[weakref.ref[Page]] = []

    def accept(link: Link) -> Page:
        page = Page(link)
        pages.append(weakref.ref(page))
        return page

    async def scenario(net: Net) -> None:
        accepts: dict[Wire, Accept] = {Wire.HTTP: accept, Wire.NODE: Recorder()}
        listener = await net.server.listen(
            Address(net.host, 0), accepts, max_frame_bytes=MAX_FRAME_BYTES
        )
        net.opened.append(listener)
        await said(listener, b"GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n")
        async with asyncio.timeout(5.0):
            while not pages or pages[0]() is not None:  # noqa: ASYNC110 - no event tells it
                await asyncio.sleep(0.001)

    gc.disable()
    try:
        run(kind, scenario)
    finally:
        gc.enable()


@on_real_nets
def test_a_head_without_end_is_refused(kind: str) -> None:
    async def scenario(net: Net) -> None:
        listener = await listening(net, Recorder(echo))
        header = b"X: " + b"y" * 1000 + b"\r\n"
        answer = await said(listener, b"GET /x HTTP/1.1\r\n", *[header] * 17)
        assert answer.startswith(b"HTTP/1.1 431 ") or answer == b"reset"

    run(kind, scenario)


@on_real_nets
def test_what_is_no_get_of_http_1_is_refused(kind: str) -> None:
    async def scenario(net: Net) -> None:
        listener = await listening(net, Recorder(echo))
        assert (await said(listener, b"GET nonsense\r\n\r\n")).startswith(b"HTTP/1.1 400 ")

    run(kind, scenario)


@on_real_nets
def test_a_port_without_plain_http_says_so(kind: str) -> None:
    async def scenario(net: Net) -> None:
        listener = await net.listen(Recorder(), Wire.NODE)
        assert (await said(listener, b"GET /x HTTP/1.0\r\n\r\n")).startswith(b"HTTP/1.1 404 ")

    run(kind, scenario)


@on_real_nets
@pytest.mark.parametrize("begin", [b"", b"GE", b"GET /x HTTP/1.1\r\n"])
def test_a_silent_client_is_closed(
    kind: str, begin: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(net: Net) -> None:
        listener = await listening(net, Recorder(echo), Wire.NODE)
        assert await said(listener, begin) in (b"", b"reset")

    monkeypatch.setattr(http, "HEAD_TIMEOUT_S", 0.02)
    monkeypatch.setattr("quorate.quorum.rpc.transport.HEAD_TIMEOUT_S", 0.02)
    run(kind, scenario)


@on_real_nets
def test_a_client_that_does_not_read_the_answer_is_closed(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def much(link: Link, target: bytes) -> None:
        link.send(b"x" * (32 << 20))
        link.close()

    async def scenario(net: Net) -> None:
        handler = Recorder(much)
        listener = await listening(net, handler)
        _, writer = await asyncio.open_connection(listener.address.host, listener.address.port)
        writer.write(b"GET /x HTTP/1.0\r\n\r\n")
        await handler.ended()
        writer.close()

    monkeypatch.setattr(http, "ANSWER_TIMEOUT_S", 0.05)
    run(kind, scenario)


@on_real_nets
@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"GET /x HTTP/1.1\r\nHost: localhost:1\r\n", b"200"),
        (b"GET /x HTTP/1.1\r\nHost: 127.0.0.1\r\n", b"200"),
        (b"GET /x HTTP/1.1\r\nHost: Broker-1.Example.:9092\r\n", b"200"),
        (b"GET /x HTTP/1.0\r\n", b"200"),
        (b"GET /x HTTP/1.1\r\nHost: evil.example\r\n", b"421"),
        (b"GET /x HTTP/1.1\r\nHost: 127.0.0.1\r\noRiGiN: null\r\n", b"403"),
        (b"GET /rpc HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: http://127.0.0.1\r\n", b"403"),
        (b"GET /rpc HTTP/1.1\r\nHost: 127.0.0.1\r\n", b"400"),
        (b"GET /x HTTP/1.1\r\nHost: 127.0.0.1\r\n" + b"a: b\r\n" * 64, b"431"),
    ],
)
def test_pages_of_browsers_are_refused(kind: str, head: bytes, status: bytes) -> None:
    async def scenario(net: Net) -> None:
        listener = await listening(net, Recorder(echo), Wire.NODE)
        answer = await said(listener, head + b"\r\n")
        assert answer.startswith(b"HTTP/1.1 " + status)

    run(kind, scenario)


@on_real_nets
def test_a_second_request_on_the_path_of_the_nodes_has_no_origin_either(kind: str) -> None:
    """Nothing is read after a request that was no handshake."""

    async def scenario(net: Net) -> None:
        node = Recorder()
        accept = {Wire.NODE: node}
        listener = await net.server.listen(
            Address(net.host, 0), accept, max_frame_bytes=MAX_FRAME_BYTES
        )
        net.opened.append(listener)
        upgrade = (
            b"GET /rpc HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\n"
            b"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nOrigin: http://evil.example\r\n\r\n"
        )
        answer = await said(listener, b"GET /rpc HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" + upgrade)
        assert b"101 Switching" not in answer
        assert b"HTTP/1.1 400" in answer

    run(kind, scenario)


HANDSHAKE = (
    b"Host: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
)


@on_real_nets
@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"GET /rpc HTTP/1.1\r\n" + HANDSHAKE, b"101"),
        (b"GET /rpc HTTP/1.1\r\n" + HANDSHAKE + b"Sec-WebSocket-Protocol: a\r\n", b"101"),
        (b"GET /rpc HTTP/1.1\r\n" + HANDSHAKE + b"X: " + b"y" * 12_000 + b"\r\n", b"101"),
        (b"GET /rpc?\xff\xfe HTTP/1.1\r\n" + HANDSHAKE, b"101"),
        (b"GET /rpc HTTP/1.1\r\n" + HANDSHAKE.replace(b"==", b"=\xff"), b"400"),
        (b"GET /rpc HTTP/1.1\r\n" + HANDSHAKE + b"Content-Length: 9\r\n", b"400"),
        (b"GET /rpc HTTP/1.1\r\n" + HANDSHAKE + b"Transfer-Encoding: x\r\n", b"400"),
        (b"GET /rpc HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n", b"400"),
        (
            b"GET /rpc HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\nContent-Length: 9\r\n",
            b"400",
        ),
    ],
)
def test_aiohttp_sees_no_head_and_no_body_of_a_client(
    kind: str, head: bytes, status: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """For each head that it could not read, aiohttp wrote a traceback into the log of the node. It
    also unpacked the bodies of requests that were refused: 1 MB of gzip took 2 s of CPU, 1.4 s of
    it in one step."""

    async def scenario(net: Net) -> None:
        listener = await listening(net, Recorder(echo), Wire.NODE)
        reader, writer = await asyncio.open_connection(listener.address.host, listener.address.port)
        writer.write(head + b"\r\n")
        assert (await reader.readline()).startswith(b"HTTP/1.1 " + status)
        if status == b"400":
            await reader.read()  # until the node has closed the connection
        writer.close()

    run(kind, scenario)
    assert not caplog.records
