"""Builds the responses of JoinGroup, SyncGroup and LeaveGroup."""

from __future__ import annotations

import dataclasses

from quorate.broker.groups.group import Group
from quorate.broker.groups.member import Member
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.group_membership import (
    JoinGroupResponse,
    JoinGroupResponseMember,
    MemberIdentity,
    MemberResponse,
    SyncGroupResponse,
)

NO_MEMBER = ""
"""The empty member id, sent by a client that has not joined before."""


def joined(group: Group, member: Member, *, skip_assignment: bool = False) -> JoinGroupResponse:
    """Return the JoinGroup response of a member. Only the leader's response lists the members.

    `skip_assignment` asks the leader not to compute a new assignment (KIP-814).
    """
    leads = member.id == group.leader
    return JoinGroupResponse(
        error_code=ErrorCode.NONE,
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol,
        leader=group.leader or NO_MEMBER,
        skip_assignment=skip_assignment,
        member_id=member.id,
        members=join_members(group) if leads else (),
    )


def joined_as_follower(group: Group, member: Member, leader: str) -> JoinGroupResponse:
    """Return a JoinGroup response that names another leader and lists no members."""
    return dataclasses.replace(joined(group, member), leader=leader, members=())


def join_members(group: Group) -> tuple[JoinGroupResponseMember, ...]:
    """Return the members with their metadata for the elected protocol, as the leader receives
    them.
    """
    protocol = group.protocol
    assert protocol is not None
    return tuple(
        JoinGroupResponseMember(
            member_id=each.id,
            group_instance_id=each.instance_id,
            metadata=each.protocols[protocol],
        )
        for each in group.members.values()
    )


def join_refused(error: ErrorCode, member_id: str = NO_MEMBER) -> JoinGroupResponse:
    """Return a JoinGroup error response."""
    return JoinGroupResponse(error_code=error, leader=NO_MEMBER, member_id=member_id, members=())


def synced(group: Group, member: Member) -> SyncGroupResponse:
    """Return the SyncGroup response with the member's assignment."""
    return SyncGroupResponse(
        error_code=ErrorCode.NONE,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol,
        assignment=member.assignment,
    )


def leave_result(leaving: MemberIdentity, error: ErrorCode) -> MemberResponse:
    """Return the LeaveGroup result of one member."""
    return MemberResponse(
        member_id=leaving.member_id,
        group_instance_id=leaving.group_instance_id,
        error_code=error,
    )
