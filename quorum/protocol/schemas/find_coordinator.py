"""The FindCoordinator messages (KIP-98, KIP-699): the brokers that coordinate groups or
transactional ids.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from quorate.quorum.protocol.field_bounds import ERROR_TEXT, GROUP_ID, KEYS
from quorate.quorum.protocol.wire import Message, wire


@dataclass(frozen=True, slots=True, kw_only=True)
class FindCoordinatorRequest(Message):
    """Asks for coordinators. `key_type` is 0 for groups and 1 for transactional ids. Version 4 asks
    for several keys."""

    API_KEY: ClassVar[int] = 10
    key: str = wire("string", versions="0-3", bound=GROUP_ID, default="")
    key_type: int = wire("int8", versions="1+", default=0)
    coordinator_keys: tuple[str, ...] = wire(
        "string", versions="4+", bound=GROUP_ID, count=KEYS, default=()
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Coordinator:
    """The coordinator of one key, or its error."""

    key: str = wire("string", versions="4+", default="")
    node_id: int = wire("int32", versions="4+", default=0)
    host: str = wire("string", versions="4+", default="")
    port: int = wire("int32", versions="4+", default=0)
    error_code: int = wire("int16", versions="4+", default=0)
    error_message: str | None = wire(
        "string", versions="4+", nullable="0+", bound=ERROR_TEXT, default=None
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FindCoordinatorResponse(Message):
    """The coordinator of the one key before version 4, or those of all keys."""

    API_KEY: ClassVar[int] = 10
    throttle_time_ms: int = wire("int32", versions="1+", default=0)
    error_code: int = wire("int16", versions="0-3", default=0)
    error_message: str | None = wire(
        "string", versions="1-3", nullable="0+", bound=ERROR_TEXT, default=None
    )
    node_id: int = wire("int32", versions="0-3", default=0)
    host: str = wire("string", versions="0-3", default="")
    port: int = wire("int32", versions="0-3", default=0)
    coordinators: tuple[Coordinator, ...] = wire(versions="4+", default=())
