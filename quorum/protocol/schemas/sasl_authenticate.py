"""The SaslAuthenticate messages (KIP-152, KIP-368): the tokens of a SASL exchange."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from quorate.quorum.protocol.field_bounds import ERROR_TEXT, SASL_TOKEN
from quorate.quorum.protocol.wire import Message, wire
from quorate.quorum.seams import Buffer


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslAuthenticateRequest(Message):
    """The next token of the client. It may hold a password, so the repr hides it."""

    API_KEY: ClassVar[int] = 36
    auth_bytes: Buffer = wire("bytes", bound=SASL_TOKEN)

    def __repr__(self) -> str:
        """Return the size of the token."""
        return f"SaslAuthenticateRequest({len(self.auth_bytes)} bytes, [hidden])"


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslAuthenticateResponse(Message):
    """The next token of the server, or an error. `session_lifetime_ms` is the time in which the
    client must authenticate again, or 0 if it need not."""

    API_KEY: ClassVar[int] = 36
    error_code: int = wire("int16", default=0)
    error_message: str | None = wire("string", nullable="0+", bound=ERROR_TEXT, default=None)
    auth_bytes: Buffer = wire("bytes", default=b"")
    session_lifetime_ms: int = wire("int64", versions="1+", default=0)
