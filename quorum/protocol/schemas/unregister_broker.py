"""The UnregisterBroker messages (KIP-500): the removal of a broker registration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from quorate.quorum.protocol.field_bounds import ERROR_TEXT, MAX_CONTROLLER_ELEMENTS
from quorate.quorum.protocol.wire import Message, wire


@dataclass(frozen=True, slots=True, kw_only=True)
class UnregisterBrokerRequest(Message):
    """Removes the registration of a broker."""

    API_KEY: ClassVar[int] = 64
    MAX_ELEMENTS: ClassVar[int] = MAX_CONTROLLER_ELEMENTS
    broker_id: int = wire("int32")


@dataclass(frozen=True, slots=True, kw_only=True)
class UnregisterBrokerResponse(Message):
    """The outcome. `error_code` is 0 if the removal is committed, or BROKER_ID_NOT_REGISTERED."""

    API_KEY: ClassVar[int] = 64
    throttle_time_ms: int = wire("int32", default=0)
    error_code: int = wire("int16", default=0)
    error_message: str | None = wire("string", nullable="0+", bound=ERROR_TEXT, default=None)
