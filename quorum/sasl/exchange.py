"""One authentication by a SASL mechanism, as the server's end runs it."""

from __future__ import annotations

import abc


class AuthenticationFailed(Exception):
    """The client did not authenticate.

    `message` is the text for the client, or None for the text that is the same for all causes.
    `reason` is for the log of the node, and `user` is the claimed name, or None if there is
    none. `kind` is the reason without texts and numbers that the client chose. Lines of equal kinds
    are limited."""

    def __init__(
        self,
        reason: str,
        user: str | None = None,
        message: str | None = None,
        kind: str | None = None,
    ) -> None:
        self.reason = reason
        self.user = user
        self.message = message
        self.kind = reason if kind is None else kind
        super().__init__(reason)


class Exchange(abc.ABC):
    """The server's end of one authentication. It is used once.

    `user` is the name that the client has proved, or None until the exchange is complete.
    `expires_wall_ms` is the end of validity of its credential in ms since 1970 UTC, or None if the
    credential does not expire. `refusal` is set if the exchange has refused the client in an
    answer, after which the client still has to send a message."""

    user: str | None = None
    expires_wall_ms: int | None = None
    refusal: AuthenticationFailed | None = None

    @abc.abstractmethod
    def respond(self, token: bytes) -> bytes:
        """Return the answer to the client's next token. Raise AuthenticationFailed if the client
        does not authenticate."""
