"""The dispatch of HTTP requests: failing handlers, and the bound of the requests in flight."""

from __future__ import annotations

import asyncio
import logging

import pytest

from quorate.quorum.log_limit import INTERVAL_MS
from quorate.quorum.rpc.http import HttpResponse
from quorate.quorum.seams import Address
from quorate.quorum.watch.http_dispatch import MAX_OPEN, BadQuery, HttpDispatch, Query
from tests.unit.rpc.kafka.fakes import FakeClock

pytestmark = pytest.mark.timeout(60)


class ExchangeLink:
    """The methods of a Link that an Exchange uses."""

    peer, identity = Address("10.0.0.9", 5000), None

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.done = asyncio.Event()

    def send(self, *parts: bytes) -> None:
        self.sent += parts

    def close(self) -> None:
        self.done.set()


async def exchanged(dispatch: HttpDispatch, target: bytes) -> bytes:
    link = ExchangeLink()
    exchange = dispatch.accept(link)  # type: ignore[arg-type]
    exchange.on_frame(memoryview(target))
    await link.done.wait()
    exchange.on_closed(None)
    return link.sent[0]


async def test_a_handler_that_fails_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async def broken(query: Query) -> HttpResponse:
        raise ZeroDivisionError

    with caplog.at_level(logging.ERROR):
        answer = await exchanged(HttpDispatch(FakeClock(), {"/x": broken}), b"/x?a=b")
    assert answer.startswith(b"HTTP/1.1 500 ")
    assert "GET /x failed" in caplog.text


async def test_requests_that_fail_fill_no_log(caplog: pytest.LogCaptureFixture) -> None:
    async def broken(query: Query) -> HttpResponse:
        raise ValueError

    clock = FakeClock()
    dispatch = HttpDispatch(clock, {"/x": broken})
    for _ in range(100):
        assert (await dispatch.answer("/x")).status == 500
    assert caplog.messages == ["GET /x failed"]
    clock.advance(INTERVAL_MS)
    await dispatch.answer("/x")
    assert caplog.messages[1:] == ["GET /x failed (99 more like it were not logged)"]


async def test_no_more_requests_than_allowed_are_under_way() -> None:
    async def slow(query: Query) -> HttpResponse:
        await asyncio.Event().wait()
        raise AssertionError

    async def fast(query: Query) -> HttpResponse:
        raise BadQuery("gone", 410)

    dispatch = HttpDispatch(FakeClock(), {"/slow": slow, "/fast": fast}, always={"/health": fast})
    open_ = [dispatch.accept(ExchangeLink()) for _ in range(MAX_OPEN)]  # type: ignore[arg-type]
    for each in open_:
        each.on_frame(memoryview(b"/slow"))
    assert (await exchanged(dispatch, b"/fast")).startswith(b"HTTP/1.1 503 ")
    assert (await exchanged(dispatch, b"/health")).startswith(b"HTTP/1.1 410 "), "always answered"
    for each in open_:
        each.on_closed(None)
    assert dispatch.open == 0
    assert (await exchanged(dispatch, b"/fast")).startswith(b"HTTP/1.1 410 ")


async def test_responses_that_clients_do_not_take_are_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("quorate.quorum.watch.http_dispatch.MAX_UNREAD_BYTES", 10_000)

    async def large(query: Query) -> HttpResponse:
        return HttpResponse(bytes(4000))

    dispatch = HttpDispatch(FakeClock(), {"/large": large}, always={"/health": large})
    held = []
    for _ in range(3):
        link = ExchangeLink()
        exchange = dispatch.accept(link)  # type: ignore[arg-type]
        exchange.on_frame(memoryview(b"/large"))
        await link.done.wait()
        held.append(exchange)
    assert (await exchanged(dispatch, b"/large")).startswith(b"HTTP/1.1 503 ")
    assert (await exchanged(dispatch, b"/health")).startswith(b"HTTP/1.1 200 ")
    for each in held:
        each.on_closed(None)
    assert dispatch.unread_bytes == 0
    assert (await exchanged(dispatch, b"/large")).startswith(b"HTTP/1.1 200 ")
