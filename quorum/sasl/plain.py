"""The mechanism PLAIN (RFC 4616): the client sends its name and its password.

The token is `authorization id NUL user NUL password`. The authorization id is empty or the user.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping

from quorate.quorum.sasl.exchange import AuthenticationFailed, Exchange

WRONG = "Authentication failed: Invalid username or password"
TOKENS = 3


class PlainExchange(Exchange):
    """An authentication by PLAIN. `users` maps the names of the users to their passwords."""

    def __init__(self, users: Mapping[str, str]) -> None:
        self._users = users

    def respond(self, token: bytes) -> bytes:
        """Return the empty answer. Raise AuthenticationFailed with Kafka's texts."""
        parts = token.decode("utf-8", "replace").split("\0")
        if len(parts) != TOKENS:
            text = f"Invalid SASL/PLAIN response: expected {TOKENS} tokens, got {len(parts)}"
            raise AuthenticationFailed(text, message=text, kind="another number of tokens")
        authorization_id, user, password = parts
        for name, value in (("username", user), ("password", password)):
            if not value:
                text = f"Authentication failed: {name} not specified"
                raise AuthenticationFailed(text, user, text)
        if not is_password(self._users.get(user), password):
            raise AuthenticationFailed("the user or the password is wrong", user, WRONG)
        if authorization_id not in ("", user):
            text = (
                "Authentication failed: Client requested an authorization id that is different "
                "from username"
            )
            raise AuthenticationFailed(text, user, text)
        self.user = user
        return b""


def is_password(expected: str | None, given: str) -> bool:
    """Return True if `given` is the expected password. None stands for an unknown user, for whom
    the comparison takes as long."""
    digests = (
        hashlib.sha256(each.encode("utf-8", "replace")).digest() for each in (expected or "", given)
    )
    equal = hmac.compare_digest(*digests)
    return equal and expected is not None
