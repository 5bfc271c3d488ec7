"""Configs of topics, brokers and groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from quorate.quorum.protocol.bounds import (
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
    resource_type: int = wire("int8")
    resource_name: str = wire("string", bound=RESOURCE_NAME)
    configuration_keys: tuple[str, ...] | None = wire(
        "string", nullable="0+", bound=CONFIG_NAME, count=CONFIGS
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeConfigsRequest(Message):
    API_KEY: ClassVar[int] = 32
    resources: tuple[DescribeConfigsResource, ...] = wire(count=RESOURCES)
    include_synonyms: bool = wire("bool", default=False)
    include_documentation: bool = wire("bool", versions="3+", default=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeConfigsSynonym:
    name: str = wire("string")
    value: str | None = wire("string", nullable="0+")
    source: int = wire("int8")


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeConfigsResourceResult:
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
    error_code: int = wire("int16", default=0)
    error_message: str | None = wire("string", nullable="0+", bound=ERROR_TEXT, default=None)
    resource_type: int = wire("int8")
    resource_name: str = wire("string")
    configs: tuple[DescribeConfigsResourceResult, ...] = wire()


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeConfigsResponse(Message):
    API_KEY: ClassVar[int] = 32
    throttle_time_ms: int = wire("int32", default=0)
    results: tuple[DescribeConfigsResult, ...] = wire()


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterableConfig:
    name: str = wire("string", bound=CONFIG_NAME)
    value: str | None = wire("string", nullable="0+", bound=CONFIG_VALUE)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterConfigsResource:
    resource_type: int = wire("int8")
    resource_name: str = wire("string", bound=RESOURCE_NAME)
    configs: tuple[AlterableConfig, ...] = wire(count=CONFIGS)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterConfigsRequest(Message):
    API_KEY: ClassVar[int] = 33
    MAX_ELEMENTS: ClassVar[int] = MAX_CONTROLLER_ELEMENTS
    resources: tuple[AlterConfigsResource, ...] = wire(count=RESOURCES)
    validate_only: bool = wire("bool")


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterConfigsResourceResponse:
    error_code: int = wire("int16", default=0)
    error_message: str | None = wire("string", nullable="0+", bound=ERROR_TEXT, default=None)
    resource_type: int = wire("int8")
    resource_name: str = wire("string")


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterConfigsResponse(Message):
    API_KEY: ClassVar[int] = 33
    throttle_time_ms: int = wire("int32", default=0)
    responses: tuple[AlterConfigsResourceResponse, ...] = wire()


@dataclass(frozen=True, slots=True, kw_only=True)
class IncrementalAlterableConfig:
    name: str = wire("string", bound=CONFIG_NAME)
    config_operation: int = wire("int8")
    value: str | None = wire("string", nullable="0+", bound=CONFIG_VALUE)


@dataclass(frozen=True, slots=True, kw_only=True)
class IncrementalAlterConfigsResource:
    resource_type: int = wire("int8")
    resource_name: str = wire("string", bound=RESOURCE_NAME)
    configs: tuple[IncrementalAlterableConfig, ...] = wire(count=CONFIGS)


@dataclass(frozen=True, slots=True, kw_only=True)
class IncrementalAlterConfigsRequest(Message):
    API_KEY: ClassVar[int] = 44
    MAX_ELEMENTS: ClassVar[int] = MAX_CONTROLLER_ELEMENTS
    resources: tuple[IncrementalAlterConfigsResource, ...] = wire(count=RESOURCES)
    validate_only: bool = wire("bool")


@dataclass(frozen=True, slots=True, kw_only=True)
class IncrementalAlterConfigsResourceResponse:
    error_code: int = wire("int16", default=0)
    error_message: str | None = wire("string", nullable="0+", bound=ERROR_TEXT, default=None)
    resource_type: int = wire("int8")
    resource_name: str = wire("string")


@dataclass(frozen=True, slots=True, kw_only=True)
class IncrementalAlterConfigsResponse(Message):
    API_KEY: ClassVar[int] = 44
    throttle_time_ms: int = wire("int32", default=0)
    responses: tuple[IncrementalAlterConfigsResourceResponse, ...] = wire()
