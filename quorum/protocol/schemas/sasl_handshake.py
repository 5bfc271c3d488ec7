"""The SaslHandshake messages (KIP-43, KIP-152): the SASL mechanisms of a broker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from quorate.quorum.protocol.field_bounds import CLIENT_TEXT
from quorate.quorum.protocol.wire import Message, wire


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslHandshakeRequest(Message):
    """Asks to authenticate with a mechanism."""

    API_KEY: ClassVar[int] = 17
    mechanism: str = wire("string", bound=CLIENT_TEXT)


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslHandshakeResponse(Message):
    """The mechanisms that the broker offers, or an error."""

    API_KEY: ClassVar[int] = 17
    error_code: int = wire("int16")
    mechanisms: tuple[str, ...] = wire("string")
