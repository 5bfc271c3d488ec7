"""Converts a group to its record in __consumer_offsets and back."""

from __future__ import annotations

from collections.abc import Mapping

from quorate.broker.groups.group import Group
from quorate.broker.groups.member import Member
from quorate.broker.groups.member_memory import MemberMemory
from quorate.broker.groups.records import GroupKey, GroupRecord, GroupValue, MemberValue
from quorate.broker.groups.state import State
from quorate.quorum.protocol.varint import DecodeError


def group_record(group: Group, assignments: Mapping[str, bytes]) -> GroupRecord:
    """Return the record of the group in its present generation.

    `assignments` maps member ids to assignments. A member that it does not name gets an empty one.
    """
    protocol = group.protocol
    return GroupRecord(
        GroupKey(group=group.id),
        GroupValue(
            protocol_type=group.protocol_type or "",
            generation=group.generation,
            protocol=protocol,
            leader=group.leader,
            current_state_timestamp=group.state_timestamp_ms,
            members=tuple(
                MemberValue(
                    member_id=each.id,
                    group_instance_id=each.instance_id,
                    client_id=each.client_id,
                    client_host=each.client_host,
                    rebalance_timeout=each.rebalance_timeout_ms,
                    session_timeout=each.session_timeout_ms,
                    subscription=each.protocols[protocol] if protocol is not None else b"",
                    assignment=assignments.get(each.id, b""),
                )
                for each in group.members.values()
            ),
        ),
    )


def group_tombstone(group_id: str) -> GroupRecord:
    """Return the record that deletes a group."""
    return GroupRecord(GroupKey(group=group_id), None)


def group_of(key: GroupKey, value: GroupValue, memory: MemberMemory) -> Group:
    """Return a group from its record in the log. A group with members is Stable.

    Each member supports only the elected protocol, because the record holds no other. The sessions
    are not started. Raise DecodeError if the record names members and no protocol."""
    protocol = value.protocol
    group = Group(
        id=key.group,
        state=State.STABLE if value.members else State.EMPTY,
        generation=value.generation,
        protocol_type=value.protocol_type or None,
        protocol=protocol,
        state_timestamp_ms=value.current_state_timestamp,
        memory=memory,
    )
    for each in value.members:
        if protocol is None:
            raise DecodeError(f"the record of group {key.group!r} has members and no protocol")
        rebalance_timeout_ms = each.rebalance_timeout
        member = Member(
            id=each.member_id,
            instance_id=each.group_instance_id,
            client_id=each.client_id,
            client_host=each.client_host,
            rebalance_timeout_ms=each.session_timeout
            if rebalance_timeout_ms < 0
            else rebalance_timeout_ms,
            session_timeout_ms=each.session_timeout,
            protocols={protocol: bytes(each.subscription)},
            assignment=bytes(each.assignment),
        )
        group.add(member, value.protocol_type)
    group.leader = value.leader
    group.topics = group.subscribed_topics()
    return group
