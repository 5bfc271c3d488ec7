"""Plain HTTP on a listening port: what outsiders may hold, and for how long."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from quorate.quorum.rpc import http
from quorate.quorum.rpc.http import HttpResponse, target_of
from quorate.quorum.seams import Address, Link, Listener, Wire
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
    """All that comes back until the other end closes."""
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


@pytest.mark.parametrize(
    ("head", "target"),
    [
        (b"GET /a?b=c HTTP/1.1\r\nHost: x", b"/a?b=c"),
        (b"GET / HTTP/1.0", b"/"),
        (b"GET /a HTTP/2", None),
        (b"GET a HTTP/1.1", None),
        (b"GET /a b HTTP/1.1", None),
        (b"GET ", None),
    ],
)
def test_the_target_of_a_head(head: bytes, target: bytes | None) -> None:
    assert target_of(head) == target


@on_real_nets
def test_a_get_cut_anywhere_is_answered_once(kind: str) -> None:
    async def scenario(net: Net) -> None:
        handler = Recorder(echo)
        listener = await listening(net, handler)
        request = b"GET /x HTTP/1.1\r\nHost: a\r\n\r"
        cut = [request[i : i + 1] for i in range(len(request))]
        answer = await said(listener, *cut, b"\nGET /again HTTP/1.1\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
        assert answer.endswith(b"\r\n\r\n/x")
        assert handler.frames == [b"/x"]

    run(kind, scenario)


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
        assert (await said(listener, b"GET /x HTTP/1.1\r\n\r\n")).startswith(b"HTTP/1.1 404 ")

    run(kind, scenario)


@on_real_nets
@pytest.mark.parametrize("begin", [b"", b"GE", b"GET /x HTTP/1.1\r\n"])
def test_who_says_nothing_more_is_closed(
    kind: str, begin: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(net: Net) -> None:
        listener = await listening(net, Recorder(echo), Wire.NODE)
        assert await said(listener, begin) in (b"", b"reset")

    monkeypatch.setattr(http, "HEAD_TIMEOUT_S", 0.02)
    monkeypatch.setattr("quorate.quorum.rpc.transport.HEAD_TIMEOUT_S", 0.02)
    run(kind, scenario)


@on_real_nets
def test_who_does_not_take_the_answer_is_closed(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def much(link: Link, target: bytes) -> None:
        link.send(b"x" * (32 << 20))
        link.close()

    async def scenario(net: Net) -> None:
        handler = Recorder(much)
        listener = await listening(net, handler)
        _, writer = await asyncio.open_connection(listener.address.host, listener.address.port)
        writer.write(b"GET /x HTTP/1.1\r\n\r\n")
        await handler.ended()
        writer.close()

    monkeypatch.setattr(http, "ANSWER_TIMEOUT_S", 0.05)
    run(kind, scenario)
