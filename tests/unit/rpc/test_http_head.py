"""Heads of HTTP requests: accepted ones, and the status with which others are refused."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.quorum.rpc.http_head import MAX_HEADERS, Head, HeadRefused, check_host, parse_head

NAMES = frozenset({"broker-1.example"})


@pytest.mark.parametrize(
    ("head", "found"),
    [
        (b"GET /a?b=c HTTP/1.1\r\nHost: x", Head(b"/a?b=c", "x")),
        (b"GET / HTTP/1.0", Head(b"/", None)),
        (b"GET / HTTP/1.1\r\nA: b\r\nhOsT:  x:1 ", Head(b"/", "x:1")),
        (b"GET / HTTP/1.1\r\nHost:", Head(b"/", "")),
    ],
)
def test_a_head_that_is_read(head: bytes, found: Head) -> None:
    assert parse_head(head) == found


WEBSOCKET = (
    b"Host: x\r\nUpgrade: WebSocket\r\nConnection: keep-alive, Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="
)


@pytest.mark.parametrize(
    ("head", "key"),
    [
        (b"GET / HTTP/1.1\r\n" + WEBSOCKET, b"dGhlIHNhbXBsZSBub25jZQ=="),
        (b"GET / HTTP/1.0\r\n" + WEBSOCKET, None),
        (b"GET / HTTP/1.1\r\n" + WEBSOCKET.replace(b"13", b"12"), None),
        (b"GET / HTTP/1.1\r\n" + WEBSOCKET.replace(b"==", b"="), None),
        (b"GET / HTTP/1.1\r\n" + WEBSOCKET.replace(b"WebSocket\r", b"h2c\r"), None),
        (b"GET / HTTP/1.1\r\n" + WEBSOCKET.replace(b", Upgrade", b", Upgrades"), None),
        (b"GET / HTTP/1.1\r\n" + WEBSOCKET + b"\r\nUpgrade: websocket", None),
        (b"GET / HTTP/1.1\r\n" + WEBSOCKET + b"\r\nContent-Length: 0", None),
        (b"GET / HTTP/1.1\r\n" + WEBSOCKET + b"\r\nTransfer-Encoding: chunked", None),
        (b"GET / HTTP/1.1\r\nHost: x", None),
    ],
)
def test_the_key_of_a_websocket_handshake(head: bytes, key: bytes | None) -> None:
    assert parse_head(head).websocket_key == key


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"GET /a HTTP/2\r\nHost: x", 400),
        (b"GET a HTTP/1.1\r\nHost: x", 400),
        (b"GET /a b HTTP/1.1\r\nHost: x", 400),
        (b"GET ", 400),
        (b"POST / HTTP/1.1\r\nHost: x", 400),
        (b"GET / HTTP/1.1", 400),  # no host
        (b"GET / HTTP/1.1\r\nHost: x\r\nHost: x", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\n folded", 400),
        (b"GET / HTTP/1.1\r\nHost : x", 400),
        (b"GET / HTTP/1.1\r\nHost: x\nOrigin: y", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nOrigin: http://x", 403),
        (b"GET / HTTP/1.1\r\nORIGIN:null\r\nHost: x", 403),
        (b"GET / HTTP/1.0\r\norigin:", 403),
        (b"GET / HTTP/1.1\r\nHost: x" + b"\r\na: b" * MAX_HEADERS, 431),
    ],
)
def test_a_head_that_is_refused(head: bytes, status: int) -> None:
    with pytest.raises(HeadRefused) as refused:
        parse_head(head)
    assert refused.value.status == status


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.0.0.1:9092",
        "10.1.2.3:",
        "[::1]",
        "[::1]:80",
        "localhost",
        "LocalHost:1",
        "broker-1.example:9092",
        "Broker-1.Example.",
        None,
    ],
)
def test_a_host_of_this_node(host: str | None) -> None:
    check_host(host, NAMES)


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example",
        "evil.example:9092",
        "broker-1.example.evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "127.0.0.1:80:80",
        "user@127.0.0.1",
        "[::1",
        "[evil.example]",
        ":80",
        "127.0.0.1:999999",
        "x" * 10_000,
    ],
)
def test_a_host_that_may_be_a_pages(host: str) -> None:
    with pytest.raises(HeadRefused) as refused:
        check_host(host, NAMES)
    assert refused.value.status == 421
    assert len(str(refused.value)) < 400


PIECES = st.sampled_from(
    [
        *(b"GET ", b"/", b" HTTP/1.1", b" HTTP/1.0", b"\r\n", b"\n", b"\r", b":", b" ", b"\x00"),
        *(b"Host", b"Origin", b"localhost", b"[::1]", b"evil", b"\xff", b"\xc3\xa9", b"a" * 300),
    ]
)


@settings(max_examples=500)
@given(st.lists(PIECES | st.binary(max_size=4), max_size=30).map(b"".join))
def test_any_head_is_read_or_refused(head: bytes) -> None:
    try:
        found = parse_head(head)
        check_host(found.host, NAMES)
    except HeadRefused as refused:
        assert refused.status in (400, 403, 421, 431)
    else:
        assert b"origin" not in [line.lower().partition(b":")[0] for line in head.split(b"\r\n")]
