"""The DescribeClientQuotas messages (KIP-546): the quotas of clients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from quorate.quorum.protocol.field_bounds import CLIENT_TEXT, ERROR_TEXT, FILTERS
from quorate.quorum.protocol.wire import Message, wire


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentData:
    """A filter for one type of entity: user, client-id or ip.

    `match_type` is 0 for the entity named `match`, 1 for the default entity, and 2 for any named
    entity. `match` is None unless the type is 0."""

    entity_type: str = wire("string", bound=CLIENT_TEXT)
    match_type: int = wire("int8")
    match: str | None = wire("string", nullable="0+", bound=CLIENT_TEXT)


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeClientQuotasRequest(Message):
    """Asks for the quotas of the entities that match all filters. `strict` excludes entities that
    also have a type without a filter."""

    API_KEY: ClassVar[int] = 48
    components: tuple[ComponentData, ...] = wire(count=FILTERS)
    strict: bool = wire("bool")


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityData:
    """One part of an entity: its type, and its name or None for the default."""

    entity_type: str = wire("string")
    entity_name: str | None = wire("string", nullable="0+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueData:
    """One quota of an entity: its config name and its value."""

    key: str = wire("string")
    value: float = wire("float64")


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryData:
    """The quotas of one entity."""

    entity: tuple[EntityData, ...] = wire()
    values: tuple[ValueData, ...] = wire()


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeClientQuotasResponse(Message):
    """The matching entities with their quotas."""

    API_KEY: ClassVar[int] = 48
    throttle_time_ms: int = wire("int32", default=0)
    error_code: int = wire("int16", default=0)
    error_message: str | None = wire("string", nullable="0+", bound=ERROR_TEXT, default=None)
    entries: tuple[EntryData, ...] | None = wire(nullable="0+", default=())
