"""The messages ListGroups (KIP-518, KIP-848), DescribeGroups (KIP-430, KIP-1043) and DeleteGroups
(KIP-229).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from quorate.quorum.protocol.field_bounds import CLIENT_TEXT, ERROR_TEXT, FILTERS, GROUP_ID, GROUPS
from quorate.quorum.protocol.wire import Message, wire
from quorate.quorum.seams import Buffer


@dataclass(frozen=True, slots=True, kw_only=True)
class ListGroupsRequest(Message):
    """Asks a broker for the groups that it coordinates. Empty filters match all groups."""

    API_KEY: ClassVar[int] = 16
    states_filter: tuple[str, ...] = wire(
        "string", versions="4+", bound=CLIENT_TEXT, count=FILTERS, default=()
    )
    types_filter: tuple[str, ...] = wire(
        "string", versions="5+", bound=CLIENT_TEXT, count=FILTERS, default=()
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedGroup:
    """One group."""

    group_id: str = wire("string")
    protocol_type: str = wire("string")
    group_state: str = wire("string", versions="4+", default="")
    group_type: str = wire("string", versions="5+", default="")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListGroupsResponse(Message):
    """The groups of this coordinator."""

    API_KEY: ClassVar[int] = 16
    throttle_time_ms: int = wire("int32", versions="1+", default=0)
    error_code: int = wire("int16")
    groups: tuple[ListedGroup, ...] = wire()


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeGroupsRequest(Message):
    """Asks for the members of groups."""

    API_KEY: ClassVar[int] = 15
    groups: tuple[str, ...] = wire("string", bound=GROUP_ID, count=GROUPS)
    include_authorized_operations: bool = wire("bool", versions="3+", default=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedGroupMember:
    """One member, with its subscription and its assignment as the client encoded them."""

    member_id: str = wire("string")
    group_instance_id: str | None = wire("string", versions="4+", nullable="4+", default=None)
    client_id: str = wire("string")
    client_host: str = wire("string")
    member_metadata: Buffer = wire("bytes")
    member_assignment: Buffer = wire("bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedGroup:
    """One group, or its error."""

    error_code: int = wire("int16")
    error_message: str | None = wire(
        "string", versions="6+", nullable="6+", bound=ERROR_TEXT, default=None
    )
    group_id: str = wire("string")
    group_state: str = wire("string")
    protocol_type: str = wire("string")
    protocol_data: str = wire("string")
    members: tuple[DescribedGroupMember, ...] = wire()
    authorized_operations: int = wire("int32", versions="3+", default=-2147483648)


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeGroupsResponse(Message):
    """The groups, in the order of the request."""

    API_KEY: ClassVar[int] = 15
    throttle_time_ms: int = wire("int32", versions="1+", default=0)
    groups: tuple[DescribedGroup, ...] = wire()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteGroupsRequest(Message):
    """Deletes groups without members."""

    API_KEY: ClassVar[int] = 42
    groups_names: tuple[str, ...] = wire("string", bound=GROUP_ID, count=GROUPS)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletableGroupResult:
    """The outcome for one group."""

    group_id: str = wire("string")
    error_code: int = wire("int16")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteGroupsResponse(Message):
    """The outcomes for all groups."""

    API_KEY: ClassVar[int] = 42
    throttle_time_ms: int = wire("int32")
    results: tuple[DeletableGroupResult, ...] = wire()
