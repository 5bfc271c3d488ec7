"""HTTP heads and targets of GET, plausible and not."""

from __future__ import annotations

import random
from collections.abc import Iterator

PATHS = (b"/", b"/healthz", b"/readyz", b"/metrics", b"/v1/changes", b"/rpc", b"/nothing")
NAMES = (b"from", b"limit", b"offset", b"until", b"topic", b"wait_ms", b"x", b"")
VALUES = (
    *(b"", b"0", b"1", b"-1", b"99999999999999999999", b"1e5", b"%00", b"%ff%fe", b"%", b"true"),
    b"x" * 8000,
)
HEADERS = (
    *(b"Host: localhost", b"Host: c1:9093", b"Host: example.com", b"Origin: http://example.com"),
    *(b"Upgrade: websocket", b"Connection: Upgrade", b"Sec-WebSocket-Version: 13"),
    *(b"Sec-WebSocket-Key: " + b"A" * 24, b"Content-Length: -1", b"Transfer-Encoding: chunked"),
    *(b": ", b"X", b"X: \x00\xff", b"X: " + b"y" * 17_000, b"Sec-WebSocket-Extensions: x"),
)
VERSIONS = (b"HTTP/1.1", b"HTTP/1.0", b"HTTP/9.9", b"HTTP/1.", b"", b"\xff")


def targets() -> Iterator[bytes]:
    for path in PATHS:
        yield path
        for name in NAMES:
            for value in VALUES:
                yield path + b"?" + name + b"=" + value
    yield b""
    yield b"/" + b"?&=" * 3000


def a_target(chance: random.Random) -> bytes:
    query = b"&".join(
        chance.choice(NAMES) + b"=" + chance.choice(VALUES) for _ in range(chance.randrange(4))
    )
    return chance.choice(PATHS) + b"?" + query


def heads() -> Iterator[bytes]:
    for path in PATHS:
        for version in VERSIONS:
            yield b"GET " + path + b" " + version + b"\r\n\r\n"
        for header in HEADERS:
            yield b"GET " + path + b" HTTP/1.1\r\n" + header + b"\r\n\r\n"
    yield b"GET " + b"/" * 20_000
    yield b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 5000


def a_head(chance: random.Random) -> bytes:
    lines = [chance.choice(HEADERS) for _ in range(chance.randrange(6))]
    first = b" ".join((b"GET", a_target(chance), chance.choice(VERSIONS)))
    end = chance.choice((b"\r\n\r\n", b"\r\n\r\n", b"\n\n", b""))
    return b"\r\n".join((first, *lines)) + end
