"""The ListConfigResources messages (KIP-1142): the resources that have configs.

Version 0 is ListClientMetricsResources (KIP-1000).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from quorate.quorum.protocol.field_bounds import FILTERS
from quorate.quorum.protocol.wire import Message, wire

CLIENT_METRICS = 16
"""The resource type of client metrics, the only one that version 0 lists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListConfigResourcesRequest(Message):
    """Asks for the resources of some types. No types means all of them."""

    API_KEY: ClassVar[int] = 74
    resource_types: tuple[int, ...] = wire("int8", versions="1+", count=FILTERS, default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigResource:
    """One resource with configs."""

    resource_name: str = wire("string")
    resource_type: int = wire("int8", versions="1+", default=CLIENT_METRICS)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListConfigResourcesResponse(Message):
    """The resources."""

    API_KEY: ClassVar[int] = 74
    throttle_time_ms: int = wire("int32", default=0)
    error_code: int = wire("int16", default=0)
    config_resources: tuple[ConfigResource, ...] = wire()
