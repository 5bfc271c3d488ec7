"""A bearer token that was verified, and the refusal of one (RFC 6750, RFC 7519)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class BearerToken(NamedTuple):
    """The user that a verified token names, and the end of its validity in ms since 1970 UTC."""

    user: str
    expires_wall_ms: int


class TokenRefused(Exception):
    """The token does not prove an identity. `reason` never contains the token or a part of its
    signature. `kind` is the reason without texts that the client chose, and `user` the name in the
    token if its signature is valid."""

    def __init__(self, reason: str, *, kind: str | None = None, user: str | None = None) -> None:
        self.reason = reason
        self.kind = reason if kind is None else kind
        self.user = user
        super().__init__(reason)


class UnknownKey(TokenRefused):
    """No key of the key set can verify the token. A newer key set may have it."""


Verify = Callable[[str], BearerToken]
"""Takes a token. Returns the user that it proves, or raises TokenRefused."""
