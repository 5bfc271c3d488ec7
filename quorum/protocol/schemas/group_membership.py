"""The messages of the classic group protocol: JoinGroup, SyncGroup, Heartbeat and LeaveGroup.

Later fields: the rebalance timeout (KIP-62), static members (KIP-345), the protocol in responses
(KIP-559), reasons (KIP-800), and skipped assignments (KIP-814).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from quorate.quorum.protocol.field_bounds import (
    CLIENT_TEXT,
    GROUP_ID,
    GROUP_INSTANCE_ID,
    MEMBER_ID,
    MEMBER_METADATA,
    MEMBERS,
    PROTOCOL_NAME,
    PROTOCOLS,
)
from quorate.quorum.protocol.wire import Message, wire
from quorate.quorum.seams import Buffer


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinGroupRequestProtocol:
    """A protocol (assignor) that the member supports, with its subscription as the client encoded
    it."""

    name: str = wire("string", bound=PROTOCOL_NAME)
    metadata: Buffer = wire("bytes", bound=MEMBER_METADATA)


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinGroupRequest(Message):
    """Joins a group, or starts a rebalance. `member_id` is empty for a new member."""

    API_KEY: ClassVar[int] = 11
    group_id: str = wire("string", bound=GROUP_ID)
    session_timeout_ms: int = wire("int32")
    rebalance_timeout_ms: int = wire("int32", versions="1+", default=-1)
    member_id: str = wire("string", bound=MEMBER_ID)
    group_instance_id: str | None = wire(
        "string", versions="5+", nullable="5+", bound=GROUP_INSTANCE_ID, default=None
    )
    protocol_type: str = wire("string", bound=PROTOCOL_NAME)
    protocols: tuple[JoinGroupRequestProtocol, ...] = wire(count=PROTOCOLS)
    reason: str | None = wire(
        "string", versions="8+", nullable="8+", bound=CLIENT_TEXT, default=None
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinGroupResponseMember:
    """One member, for the group leader, which computes the assignment."""

    member_id: str = wire("string")
    group_instance_id: str | None = wire("string", versions="5+", nullable="5+", default=None)
    metadata: Buffer = wire("bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinGroupResponse(Message):
    """The generation and the protocol of the group. Only the leader's response lists `members`."""

    API_KEY: ClassVar[int] = 11
    throttle_time_ms: int = wire("int32", versions="2+", default=0)
    error_code: int = wire("int16")
    generation_id: int = wire("int32", default=-1)
    protocol_type: str | None = wire("string", versions="7+", nullable="7+", default=None)
    protocol_name: str | None = wire("string", nullable="7+", default=None)
    leader: str = wire("string")
    skip_assignment: bool = wire("bool", versions="9+", default=False)
    member_id: str = wire("string")
    members: tuple[JoinGroupResponseMember, ...] = wire()


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncGroupRequestAssignment:
    """The assignment of one member."""

    member_id: str = wire("string", bound=MEMBER_ID)
    assignment: Buffer = wire("bytes", bound=MEMBER_METADATA)


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncGroupRequest(Message):
    """Asks for the assignment of the member that sends it. The request of the group leader contains
    the assignments of all members."""

    API_KEY: ClassVar[int] = 14
    group_id: str = wire("string", bound=GROUP_ID)
    generation_id: int = wire("int32")
    member_id: str = wire("string", bound=MEMBER_ID)
    group_instance_id: str | None = wire(
        "string", versions="3+", nullable="3+", bound=GROUP_INSTANCE_ID, default=None
    )
    protocol_type: str | None = wire(
        "string", versions="5+", nullable="5+", bound=PROTOCOL_NAME, default=None
    )
    protocol_name: str | None = wire(
        "string", versions="5+", nullable="5+", bound=PROTOCOL_NAME, default=None
    )
    assignments: tuple[SyncGroupRequestAssignment, ...] = wire(count=MEMBERS)


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncGroupResponse(Message):
    """The assignment of the member."""

    API_KEY: ClassVar[int] = 14
    throttle_time_ms: int = wire("int32", versions="1+", default=0)
    error_code: int = wire("int16")
    protocol_type: str | None = wire("string", versions="5+", nullable="5+", default=None)
    protocol_name: str | None = wire("string", versions="5+", nullable="5+", default=None)
    assignment: Buffer = wire("bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatRequest(Message):
    """Keeps a member in its group."""

    API_KEY: ClassVar[int] = 12
    group_id: str = wire("string", bound=GROUP_ID)
    generation_id: int = wire("int32")
    member_id: str = wire("string", bound=MEMBER_ID)
    group_instance_id: str | None = wire(
        "string", versions="3+", nullable="3+", bound=GROUP_INSTANCE_ID, default=None
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatResponse(Message):
    """The state of the member. REBALANCE_IN_PROGRESS asks it to join again."""

    API_KEY: ClassVar[int] = 12
    throttle_time_ms: int = wire("int32", versions="1+", default=0)
    error_code: int = wire("int16")


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberIdentity:
    """A member that leaves."""

    member_id: str = wire("string", versions="3+", bound=MEMBER_ID, default="")
    group_instance_id: str | None = wire(
        "string", versions="3+", nullable="3+", bound=GROUP_INSTANCE_ID, default=None
    )
    reason: str | None = wire(
        "string", versions="5+", nullable="5+", bound=CLIENT_TEXT, default=None
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveGroupRequest(Message):
    """Removes one member, or several since version 3."""

    API_KEY: ClassVar[int] = 13
    group_id: str = wire("string", bound=GROUP_ID)
    member_id: str = wire("string", versions="0-2", bound=MEMBER_ID, default="")
    members: tuple[MemberIdentity, ...] = wire(versions="3+", count=MEMBERS, default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberResponse:
    """The outcome for one member."""

    member_id: str = wire("string", versions="3+", default="")
    group_instance_id: str | None = wire("string", versions="3+", nullable="3+", default=None)
    error_code: int = wire("int16", versions="3+", default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveGroupResponse(Message):
    """The outcomes for all members."""

    API_KEY: ClassVar[int] = 13
    throttle_time_ms: int = wire("int32", versions="1+", default=0)
    error_code: int = wire("int16")
    members: tuple[MemberResponse, ...] = wire(versions="3+", default=())
