"""An OpenID provider on this machine: a token endpoint and a key set, over https or http."""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from tests.certificates import Files, certificate, files
from tests.tokens import TokenProvider

CLIENT, SECRET = "alice", "canary of alice"
"""The client of the endpoint, and its secret. Its tokens name it as their user."""


class TokenServer:
    """A running provider. A test may change its attributes.

    `lifetime_s` is the time for which new tokens are valid, and `claims` are further claims.
    `requests` has the form of each request for a token, and `reads` counts those for the keys. A
    `status` other than 200 is the answer to every request."""

    def __init__(self, url: str, certificate: Files | None) -> None:
        self.url = url
        self.certificate = certificate
        self.provider = TokenProvider()
        self.lifetime_s = 60.0
        self.claims: dict[str, Any] = {}
        self.status = 200
        self.requests: list[dict[str, str]] = []
        self.reads = 0

    @property
    def token_url(self) -> str:
        return f"{self.url}/token"

    @property
    def keys_url(self) -> str:
        return f"{self.url}/keys"

    def token(self, user: str = CLIENT, **changes: Any) -> str:
        """Return a new token."""
        changes = {"seconds": self.lifetime_s, **self.claims, **changes}
        return self.provider.token(time.time_ns() // 1_000_000, user, **changes)

    def issue(self, form: dict[str, str]) -> dict[str, Any]:
        """Return the answer to a request for a token."""
        self.requests.append(form)
        return {"access_token": self.token(), "expires_in": self.lifetime_s, "token_type": "Bearer"}


class Handler(BaseHTTPRequestHandler):
    """Answers the requests of clients and brokers."""

    protocol_version = "HTTP/1.1"
    at: TokenServer

    def do_GET(self) -> None:
        self.at.reads += 1
        self._answer(self.at.status if self.path == "/keys" else 404, self.at.provider.jwks())

    def do_POST(self) -> None:
        size = int(self.headers["Content-Length"])
        form = {name: each[0] for name, each in parse_qs(self.rfile.read(size).decode()).items()}
        expected = base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
        if self.path != "/token" or self.headers["Authorization"] != f"Basic {expected}":
            self._answer(401, b'{"error": "invalid_client"}')
        else:
            self._answer(self.at.status, json.dumps(self.at.issue(form)).encode())

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Write nothing."""


@contextmanager
def token_server(directory: Path | None) -> Iterator[TokenServer]:
    """Run a provider, with a certificate in a new `directory`, or over http without one."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found = None if directory is None else files(directory, certificate("CN=provider"))
    if found is not None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(found.keystore)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    scheme = "http" if found is None else "https"
    at = TokenServer(f"{scheme}://localhost:{server.server_address[1]}", found)
    server.RequestHandlerClass = type("Bound", (Handler,), {"at": at})
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield at
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
