"""The head of an HTTP request: its target, or the reason for a refusal.

A web page can make its reader's browser send requests to any address that the browser reaches. Two
rules refuse such requests:

- A request with an Origin header is refused. Browsers send one with every WebSocket and with every
  request that a page may read across sites. No node and no monitoring tool sends one.
- Plain HTTP needs a Host that names this node: an IP address, localhost, or one of
  `NodeConfig.host_names`. A page whose own host name resolves to this node (DNS rebinding) sends
  that name.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from quorate.quorum.clipped import quoted

MAX_HEAD_BYTES = 16 * 1024
MAX_HEADERS = 64
END_OF_LINE = b"\r\n"
HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\t\x20-\x7e\x80-\xff]*)")
REQUEST_LINE = re.compile(rb"GET (/[\x21-\x7e\x80-\xff]*) HTTP/1\.([01])")
HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^:\[\]]+)(?::[0-9]{0,5})?")
BEARER = re.compile(rb"(?i:bearer) +([A-Za-z0-9._~+/-]+=*)")
WEBSOCKET = {
    b"upgrade": re.compile(rb"(?i:websocket)"),
    b"connection": re.compile(rb"(?i:(?:.*,[ \t]*)?upgrade(?:[ \t]*,.*)?)"),
    b"sec-websocket-version": re.compile(rb"13"),
    b"sec-websocket-key": re.compile(rb"[A-Za-z0-9+/]{22}=="),
}
"""The headers of a WebSocket handshake, and their values."""
BODY = (b"content-length", b"transfer-encoding")
"""The headers of a request that has a body, which a handshake of WebSocket has not."""
LOCALHOST = "localhost"


class HeadRefused(Exception):
    """The request is refused. `status` is the HTTP status, and the message gives the reason."""

    def __init__(self, status: int, reason: str) -> None:
        """Create a refusal with an HTTP status."""
        super().__init__(reason)
        self.status = status


@dataclass(frozen=True, slots=True)
class Head:
    """The parts of a request's head that this node uses."""

    target: bytes
    host: str | None
    """None if an HTTP/1.0 client sent no Host header."""
    bearer: str | None = field(default=None, repr=False)
    """The token of an Authorization header with the scheme Bearer (RFC 6750)."""
    websocket_key: bytes | None = None
    """The key of the WebSocket handshake that the head makes, or None if it makes none."""


def parse_head(head: bytes) -> Head:
    """Parse a complete head, without the empty line at its end.

    Raise HeadRefused if it is malformed, is no GET of HTTP/1.0 or HTTP/1.1, has an Origin, or has
    more than MAX_HEADERS headers."""
    line, _, rest = head.partition(END_OF_LINE)
    asked = REQUEST_LINE.fullmatch(line)
    if asked is None:
        raise HeadRefused(400, "only GET requests of HTTP/1.0 and HTTP/1.1 are served")
    headers = _headers(rest)
    hosts = [each.decode("latin-1").strip() for each in headers.get(b"host", ())]
    if len(hosts) > 1 or (not hosts and asked[2] == b"1"):
        raise HeadRefused(400, "a request of HTTP/1.1 needs exactly one Host header")
    found = (BEARER.fullmatch(each.strip()) for each in headers.get(b"authorization", ()))
    bearers = [each[1].decode("ascii") for each in found if each]
    if len(bearers) > 1:
        raise HeadRefused(400, "a request may have one Authorization header")
    return Head(
        asked[1],
        hosts[0] if hosts else None,
        bearers[0] if bearers else None,
        _websocket_key(headers) if asked[2] == b"1" else None,
    )


def _headers(lines: bytes) -> dict[bytes, list[bytes]]:
    """Return the values of each header by its name in lower case. Raise HeadRefused."""
    headers: dict[bytes, list[bytes]] = {}
    each_line = lines.split(END_OF_LINE) if lines else []
    if len(each_line) > MAX_HEADERS:
        raise HeadRefused(431, f"a request may have at most {MAX_HEADERS} headers")
    for line in each_line:
        header = HEADER.fullmatch(line)
        if header is None:
            raise HeadRefused(400, "a header is malformed")
        name = header[1].lower()
        if name == b"origin":
            raise HeadRefused(
                403, "requests with an Origin header, which web pages send, are refused"
            )
        headers.setdefault(name, []).append(header[2])
    return headers


def _websocket_key(headers: Mapping[bytes, Sequence[bytes]]) -> bytes | None:
    """Return the key of a WebSocket handshake (RFC 6455), or None if the headers make none."""
    values = [headers.get(name, ()) for name in WEBSOCKET]
    whole = all(len(each) == 1 for each in values)
    if not whole or any(name in headers for name in BODY):
        return None
    texts = [each[0].strip() for each in values]
    fits = all(map(re.Pattern.fullmatch, WEBSOCKET.values(), texts))
    return texts[-1] if fits else None


def check_host(host: str | None, names: Collection[str]) -> None:
    """Raise HeadRefused unless `host`, a Host header, is an IP address, localhost, or one of
    `names`, with or without a port.

    `names` are in lower case. None is accepted, because only HTTP/1.0 clients may send no Host, and
    no browser speaks HTTP/1.0."""
    if host is None:
        return
    match = HOST.fullmatch(host)
    name = match[1].lower().rstrip(".") if match else ""
    if not name or not (name == LOCALHOST or name in names or _is_address(name)):
        raise HeadRefused(
            421,
            f"{quoted(host)} is not a name of this node. Use its IP address or a host of its "
            "listeners or advertised.listeners, or add the name to quorate.http.host.names",
        )


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True
