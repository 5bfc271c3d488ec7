"""The bearer tokens of a command: from the token endpoint of a provider, or from a file.

The endpoint is asked with the client credentials grant (RFC 6749, KIP-768). A token is used again
until RENEWED_AT of its validity has passed. If the endpoint does not answer then, the old token is
used until it expires. No error contains a token or a secret.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeGuard
from urllib.parse import SplitResult, quote_plus, unquote, urlencode, urlsplit

from quorate.cli.client.errors import Refused

if TYPE_CHECKING:
    import ssl

TIMEOUT_S = 10.0
"""The time for each step of the request."""
MAX_BYTES = 1 << 20
"""The most bytes of an answer or a file."""
RENEWED_AT = 0.8
"""The share of a token's validity after which another token is asked for. It is below the share of
a session after which a command logs in again, so that each login has a new token if the token ends
the session."""
OK = 200
TOKEN = re.compile(r"[-_.a-zA-Z0-9]+")
URL_KEY = "sasl.oauthbearer.token.endpoint.url"


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenSettings:
    """A place of tokens. `tls` verifies an https endpoint. `encodes` applies the encoding of URLs
    to the client and its secret, as RFC 6749 demands and most providers do not."""

    url: str
    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    scope: str | None = None
    encodes: bool = False
    tls: ssl.SSLContext | None = None


@dataclass(frozen=True, slots=True)
class Issued:
    """A token, and the times from which another one is asked for and in which it ends, in seconds
    of the monotonic clock."""

    token: str = field(repr=False)
    renew_s: float
    end_s: float


class TokenSource:
    """The current token. Any thread may use it; all of them wait while one asks the endpoint."""

    def __init__(self, settings: TokenSettings) -> None:
        self.settings = settings
        self._lock = threading.Lock()
        self._issued: Issued | None = None

    def current(self) -> str:
        """Return a token for a login. Blocks while the endpoint or the file is read.

        Raise Refused if there is none."""
        url = urlsplit(self.settings.url)
        if url.scheme == "file":
            return read_token(unquote(url.path))
        with self._lock:
            now_s = time.monotonic()
            issued = self._issued
            if issued is not None and now_s < issued.renew_s:
                return issued.token
            try:
                self._issued = issued = lifetime_of(ask(self.settings, url), now_s)
            except Refused:
                if issued is None or now_s >= issued.end_s:
                    raise
            return issued.token


def read_token(path: str) -> str:
    """Return the token in a file. Raise Refused if there is none."""
    try:
        with open(path, encoding="ascii") as file:
            text = file.read(MAX_BYTES).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(f"{URL_KEY}: {error}") from None
    if not TOKEN.fullmatch(text):
        raise Refused(f"{URL_KEY}: {path} holds no token")
    return text


def ask(settings: TokenSettings, url: SplitResult) -> Mapping[str, Any]:
    """Return the answer of the token endpoint at `url`. Raise Refused if it issues no token."""
    import http.client

    host = url.hostname or ""
    connection = (
        http.client.HTTPSConnection(host, url.port, timeout=TIMEOUT_S, context=settings.tls)
        if url.scheme == "https"
        else http.client.HTTPConnection(host, url.port, timeout=TIMEOUT_S)
    )
    target = (url.path or "/") + (f"?{url.query}" if url.query else "")
    form = {"grant_type": "client_credentials"}
    if settings.scope:
        form["scope"] = settings.scope
    headers = {
        "Accept": "application/json",
        "Authorization": f"Basic {basic(settings)}",
        "Content-Type": "application/x-www-form-urlencoded",
    }
    try:
        connection.request("POST", target, urlencode(form), headers)
        answer = connection.getresponse()
        body = answer.read(MAX_BYTES)
    except (OSError, http.client.HTTPException) as error:
        raise Refused(f"{URL_KEY}: {settings.url}: {error}") from None
    finally:
        connection.close()
    if answer.status != OK:
        raise Refused(
            f"{URL_KEY}: {settings.url} answers with status {answer.status}. Check the client id, "
            "its secret and the scope"
        )
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise Refused(f"{URL_KEY}: {settings.url} answers with no JSON object")
    return found


def basic(settings: TokenSettings) -> str:
    """Return the client and its secret for the Authorization header."""
    pair = (settings.client_id, settings.client_secret)
    text = ":".join(map(quote_plus, pair) if settings.encodes else pair)
    return base64.b64encode(text.encode()).decode()


def lifetime_of(answer: Mapping[str, Any], now_s: float) -> Issued:
    """Return the token in an answer of the endpoint. If the answer does not state its lifetime,
    the token itself does. Raise Refused if there is no token."""
    token = answer.get("access_token") or answer.get("id_token")
    if not isinstance(token, str) or not TOKEN.fullmatch(token.strip()):
        raise Refused(f"{URL_KEY}: the answer of the endpoint has no access_token")
    stated_s = answer.get("expires_in")
    rest_s = float(stated_s) if is_positive(stated_s) else expiration_of(token) - time.time()
    rest_s = max(0.0, rest_s)
    return Issued(token.strip(), now_s + rest_s * RENEWED_AT, now_s + rest_s)


def expiration_of(token: str) -> float:
    """Return the end of validity that a token states, in seconds since 1970 UTC, or 0."""
    parts = token.split(".")
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        end_s = claims["exp"]
    except (binascii.Error, ValueError, RecursionError, LookupError, TypeError):
        return 0.0
    return float(end_s) if is_positive(end_s) else 0.0


def is_positive(value: object) -> TypeGuard[float]:
    """Return True if `value` is a number above 0."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e15
