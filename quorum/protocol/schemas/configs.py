"""The messages DescribeConfigs and AlterConfigs (KIP-133, KIP-226, KIP-569), and
IncrementalAlterConfigs (KIP-339).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from quorate.quorum.protocol.field_bounds import (
    CONFIG_NAME,
    CONFIG_VALUE,
    CONFIGS,
    ERROR_TEXT,
    MAX_CONTROLLER_ELEMENTS,
    RESOURCE_NAME,
    RESOURCES,
)
from quorate.quorum.protocol.wire import Message, wire


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeConfigsResource:
    """A resource to describe. Without keys, all of its configs are described."""

    resource_type: int = wire("int8")
    resource_name: str = wire("string", bound=RESOURCE_NAME)
    configuration_keys: tuple[str, ...] | None = wire(
        "string", nullable="0+", bound=CONFIG_NAME, count=CONFIGS
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeConfigsRequest(Message):
    """Asks for the configs of resources: topics, brokers, groups and client metrics."""

    API_KEY: ClassVar[int] = 32
    resources: tuple[DescribeConfigsResource, ...] = wire(count=RESOURCES)
    include_synonyms: bool = wire("bool", default=False)
    include_documentation: bool = wire("bool", versions="3+", default=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeConfigsSynonym:
    """One place that sets a config, in order of precedence."""

    name: str = wire("string")
    value: str | None = wire("string", nullable="0+")
    source: int = wire("int8")


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeConfigsResourceResult:
    """One config: its value, its source and its properties."""

    name: str = wire("string")
    value: str | None = wire("string", nullable="0+")
    read_only: bool = wire("bool")
    config_source: int = wire("int8", default=-1)
    is_sensitive: bool = wire("bool")
    synonyms: tuple[DescribeConfigsSynonym, ...] = wire(default=())
    config_type: int = wire("int8", versions="3+", default=0)
    documentation: str | None = wire("string", versions="3+", nullable="0+", default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeConfigsResult:
    """The configs of one resource, or its error."""

    error_code: int = wire("int16", default=0)
    error_message: str | None = wire("string", nullable="0+", bound=ERROR_TEXT, default=None)
    resource_type: int = wire("int8")
    resource_name: str = wire("string")
    configs: tuple[DescribeConfigsResourceResult, ...] = wire()


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeConfigsResponse(Message):
    """The results, in the order of the request."""

    API_KEY: ClassVar[int] = 32
    throttle_time_ms: int = wire("int32", default=0)
    results: tuple[DescribeConfigsResult, ...] = wire()


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterableConfig:
    """A config to set."""

    name: str = wire("string", bound=CONFIG_NAME)
    value: str | None = wire("string", nullable="0+", bound=CONFIG_VALUE)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterConfigsResource:
    """All configs that a resource is to have."""

    resource_type: int = wire("int8")
    resource_name: str = wire("string", bound=RESOURCE_NAME)
    configs: tuple[AlterableConfig, ...] = wire(count=CONFIGS)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterConfigsRequest(Message):
    """Replaces all configs of resources."""

    API_KEY: ClassVar[int] = 33
    MAX_ELEMENTS: ClassVar[int] = MAX_CONTROLLER_ELEMENTS
    resources: tuple[AlterConfigsResource, ...] = wire(count=RESOURCES)
    validate_only: bool = wire("bool")


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterConfigsResourceResponse:
    """The outcome for one resource."""

    error_code: int = wire("int16", default=0)
    error_message: str | None = wire("string", nullable="0+", bound=ERROR_TEXT, default=None)
    resource_type: int = wire("int8")
    resource_name: str = wire("string")


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterConfigsResponse(Message):
    """The outcomes for all resources."""

    API_KEY: ClassVar[int] = 33
    throttle_time_ms: int = wire("int32", default=0)
    responses: tuple[AlterConfigsResourceResponse, ...] = wire()


@dataclass(frozen=True, slots=True, kw_only=True)
class IncrementalAlterableConfig:
    """A change of one config: set, delete, append or subtract."""

    name: str = wire("string", bound=CONFIG_NAME)
    config_operation: int = wire("int8")
    value: str | None = wire("string", nullable="0+", bound=CONFIG_VALUE)


@dataclass(frozen=True, slots=True, kw_only=True)
class IncrementalAlterConfigsResource:
    """The changes of one resource."""

    resource_type: int = wire("int8")
    resource_name: str = wire("string", bound=RESOURCE_NAME)
    configs: tuple[IncrementalAlterableConfig, ...] = wire(count=CONFIGS)


@dataclass(frozen=True, slots=True, kw_only=True)
class IncrementalAlterConfigsRequest(Message):
    """Changes single configs of resources."""

    API_KEY: ClassVar[int] = 44
    MAX_ELEMENTS: ClassVar[int] = MAX_CONTROLLER_ELEMENTS
    resources: tuple[IncrementalAlterConfigsResource, ...] = wire(count=RESOURCES)
    validate_only: bool = wire("bool")


@dataclass(frozen=True, slots=True, kw_only=True)
class IncrementalAlterConfigsResourceResponse:
    """The outcome for one resource."""

    error_code: int = wire("int16", default=0)
    error_message: str | None = wire("string", nullable="0+", bound=ERROR_TEXT, default=None)
    resource_type: int = wire("int8")
    resource_name: str = wire("string")


@dataclass(frozen=True, slots=True, kw_only=True)
class IncrementalAlterConfigsResponse(Message):
    """The outcomes for all resources."""

    API_KEY: ClassVar[int] = 44
    throttle_time_ms: int = wire("int32", default=0)
    responses: tuple[IncrementalAlterConfigsResourceResponse, ...] = wire()
