"""The messages DescribeAcls, CreateAcls and DeleteAcls (KIP-140, KIP-290)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from quorate.quorum.protocol.field_bounds import CLIENT_TEXT, ERROR_TEXT, RESOURCE_NAME, RESOURCES
from quorate.quorum.protocol.wire import Message, wire

LITERAL = 3
"""The pattern type of a resource name that stands for itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeAclsRequest(Message):
    """Asks for the ACLs that match a filter. A name of None matches all names."""

    API_KEY: ClassVar[int] = 29
    resource_type_filter: int = wire("int8")
    resource_name_filter: str | None = wire("string", nullable="0+", bound=RESOURCE_NAME)
    pattern_type_filter: int = wire("int8", default=LITERAL)
    principal_filter: str | None = wire("string", nullable="0+", bound=CLIENT_TEXT)
    host_filter: str | None = wire("string", nullable="0+", bound=CLIENT_TEXT)
    operation: int = wire("int8")
    permission_type: int = wire("int8")


@dataclass(frozen=True, slots=True, kw_only=True)
class AclDescription:
    """One ACL of a resource."""

    principal: str = wire("string")
    host: str = wire("string")
    operation: int = wire("int8")
    permission_type: int = wire("int8")


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeAclsResource:
    """The ACLs of one resource."""

    resource_type: int = wire("int8")
    resource_name: str = wire("string")
    pattern_type: int = wire("int8", default=LITERAL)
    acls: tuple[AclDescription, ...] = wire()


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeAclsResponse(Message):
    """The ACLs by resource."""

    API_KEY: ClassVar[int] = 29
    throttle_time_ms: int = wire("int32", default=0)
    error_code: int = wire("int16")
    error_message: str | None = wire("string", nullable="0+", bound=ERROR_TEXT, default=None)
    resources: tuple[DescribeAclsResource, ...] = wire(default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class AclCreation:
    """One ACL to create."""

    resource_type: int = wire("int8")
    resource_name: str = wire("string", bound=RESOURCE_NAME)
    resource_pattern_type: int = wire("int8", default=LITERAL)
    principal: str = wire("string", bound=CLIENT_TEXT)
    host: str = wire("string", bound=CLIENT_TEXT)
    operation: int = wire("int8")
    permission_type: int = wire("int8")


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateAclsRequest(Message):
    """Creates ACLs."""

    API_KEY: ClassVar[int] = 30
    creations: tuple[AclCreation, ...] = wire(count=RESOURCES)


@dataclass(frozen=True, slots=True, kw_only=True)
class AclCreationResult:
    """The result of one creation."""

    error_code: int = wire("int16")
    error_message: str | None = wire("string", nullable="0+", bound=ERROR_TEXT, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateAclsResponse(Message):
    """The results in the order of the creations."""

    API_KEY: ClassVar[int] = 30
    throttle_time_ms: int = wire("int32", default=0)
    results: tuple[AclCreationResult, ...] = wire()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteAclsFilter:
    """A filter whose ACLs are to be deleted. A name of None matches all names."""

    resource_type_filter: int = wire("int8")
    resource_name_filter: str | None = wire("string", nullable="0+", bound=RESOURCE_NAME)
    pattern_type_filter: int = wire("int8", default=LITERAL)
    principal_filter: str | None = wire("string", nullable="0+", bound=CLIENT_TEXT)
    host_filter: str | None = wire("string", nullable="0+", bound=CLIENT_TEXT)
    operation: int = wire("int8")
    permission_type: int = wire("int8")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteAclsRequest(Message):
    """Deletes the ACLs that match the filters."""

    API_KEY: ClassVar[int] = 31
    filters: tuple[DeleteAclsFilter, ...] = wire(count=RESOURCES)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteAclsMatchingAcl:
    """One ACL that matched a filter."""

    error_code: int = wire("int16")
    error_message: str | None = wire("string", nullable="0+", bound=ERROR_TEXT, default=None)
    resource_type: int = wire("int8")
    resource_name: str = wire("string")
    pattern_type: int = wire("int8", default=LITERAL)
    principal: str = wire("string")
    host: str = wire("string")
    operation: int = wire("int8")
    permission_type: int = wire("int8")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteAclsFilterResult:
    """The result of one filter."""

    error_code: int = wire("int16")
    error_message: str | None = wire("string", nullable="0+", bound=ERROR_TEXT, default=None)
    matching_acls: tuple[DeleteAclsMatchingAcl, ...] = wire(default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteAclsResponse(Message):
    """The results in the order of the filters."""

    API_KEY: ClassVar[int] = 31
    throttle_time_ms: int = wire("int32", default=0)
    filter_results: tuple[DeleteAclsFilterResult, ...] = wire()
