"""The requests that the console refuses, and the headers of its responses. All functions are pure.

The console reads the cluster with its operator's credentials. Therefore:

- A request for data needs the token, which only the printed address contains.
- The Host header must be an IP address, localhost or the host of --listen, because a page whose own
  host name resolves to this machine (DNS rebinding) sends that name.
- A request with an Origin must have the console's own, and a request that another site caused
  (Sec-Fetch-Site) is refused.
- A request that changes the cluster must have an Origin and the type of JSON. A page of another
  site cannot send this type, because the console never gives the permission for it (CORS).
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping

from quorate.quorum.rpc.http_head import HeadRefused, check_host

TOKEN_HEADER = "Quorate-Console-Token"
OWN_SITES = ("same-origin", "none")
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""The headers of every response. The page loads its own files only, and no page may frame it."""


class RequestRefused(Exception):
    """The console refuses a request. `status` is the HTTP status."""

    def __init__(self, status: int, reason: str) -> None:
        """Create a refusal, whose reason is the text of the response."""
        super().__init__(reason)
        self.status = status


def check_sender(headers: Mapping[str, str], listen_host: str) -> None:
    """Raise RequestRefused if the Host is not the console's, or if another site sent the request.

    `listen_host` is the address that the console listens on."""
    host = headers.get("Host")
    try:
        if host is None:
            raise RequestRefused(400, "the request has no Host header")
        check_host(host, (listen_host.lower(),))
    except HeadRefused as refused:
        raise RequestRefused(
            refused.status, "this Host is no name of the console: use the printed address"
        ) from None
    if headers.get("Origin", f"http://{host}") != f"http://{host}":
        raise RequestRefused(403, "the Origin of the request is another site")
    if headers.get("Sec-Fetch-Site", OWN_SITES[0]) not in OWN_SITES:
        raise RequestRefused(403, "another site caused the request")


def check_token(headers: Mapping[str, str], token: str) -> None:
    """Raise RequestRefused unless the headers carry the token."""
    given = headers.get(TOKEN_HEADER, "")
    if not hmac.compare_digest(given.encode("utf-8", "replace"), token.encode()):
        raise RequestRefused(401, "the token is missing or wrong: open the printed address")


def check_change(headers: Mapping[str, str]) -> None:
    """Raise RequestRefused unless a request that changes the cluster has an Origin and JSON.

    `check_sender` has compared the Origin."""
    if "Origin" not in headers:
        raise RequestRefused(403, "a request that changes the cluster must have an Origin")
    if headers.get("Content-Type", "").partition(";")[0].strip().lower() != "application/json":
        raise RequestRefused(415, "the type of the body must be application/json")
