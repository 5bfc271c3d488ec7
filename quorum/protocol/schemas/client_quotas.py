"""The DescribeClientQuotas and AlterClientQuotas messages (KIP-546): the quotas of clients.

An entity is a user, a client id, an IP address, or a user together with a client id.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from quorate.quorum.protocol.field_bounds import (
    CLIENT_TEXT,
    CONFIG_NAME,
    ERROR_TEXT,
    FILTERS,
    MAX_CONTROLLER_ELEMENTS,
    QUOTA_ENTITIES,
    QUOTA_NAME,
    QUOTAS,
)
from quorate.quorum.protocol.wire import Message, wire


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentData:
    """A filter for one part of an entity. `entity_type` is user, client-id or ip.

    `match_type` is 0 for the name `match`, 1 for the default entity, and 2 for all names and the
    default entity. `match` is None unless `match_type` is 0."""

    entity_type: str = wire("string", bound=CLIENT_TEXT)
    match_type: int = wire("int8")
    match: str | None = wire("string", nullable="0+", bound=CLIENT_TEXT)


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeClientQuotasRequest(Message):
    """Asks for the quotas of the entities that match all filters.

    If `strict`, an entity must not have further parts: a filter for a user then excludes an entity
    of a user and a client id."""

    API_KEY: ClassVar[int] = 48
    components: tuple[ComponentData, ...] = wire(count=FILTERS)
    strict: bool = wire("bool")


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityData:
    """One part of an entity: its type, and its name, or None for the default entity."""

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
    """The matching entities with their quotas, or an error with `entries` None."""

    API_KEY: ClassVar[int] = 48
    throttle_time_ms: int = wire("int32", default=0)
    error_code: int = wire("int16", default=0)
    error_message: str | None = wire("string", nullable="0+", bound=ERROR_TEXT, default=None)
    entries: tuple[EntryData, ...] | None = wire(nullable="0+", default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class AlteredEntityData:
    """One part of an entity to change: its type, and its name, or None for the default entity."""

    entity_type: str = wire("string", bound=CLIENT_TEXT)
    entity_name: str | None = wire("string", nullable="0+", bound=QUOTA_NAME)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpData:
    """One change: sets the quota `key` to `value`. If `remove`, it removes the quota instead, and
    `value` has no meaning."""

    key: str = wire("string", bound=CONFIG_NAME)
    value: float = wire("float64")
    remove: bool = wire("bool")


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterationData:
    """The changes of one entity."""

    entity: tuple[AlteredEntityData, ...] = wire(count=QUOTAS)
    ops: tuple[OpData, ...] = wire(count=QUOTAS)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterClientQuotasRequest(Message):
    """Changes the quotas of entities. With `validate_only` nothing changes."""

    API_KEY: ClassVar[int] = 49
    MAX_ELEMENTS: ClassVar[int] = MAX_CONTROLLER_ELEMENTS
    entries: tuple[AlterationData, ...] = wire(count=QUOTA_ENTITIES)
    validate_only: bool = wire("bool")


@dataclass(frozen=True, slots=True, kw_only=True)
class AlteredData:
    """The outcome for one entity."""

    error_code: int = wire("int16", default=0)
    error_message: str | None = wire("string", nullable="0+", bound=ERROR_TEXT, default=None)
    entity: tuple[EntityData, ...] = wire()


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterClientQuotasResponse(Message):
    """The outcome for each entity, in the order of the request."""

    API_KEY: ClassVar[int] = 49
    throttle_time_ms: int = wire("int32", default=0)
    entries: tuple[AlteredData, ...] = wire()
