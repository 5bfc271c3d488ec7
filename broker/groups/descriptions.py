"""Groups in the form in which ListGroups and DescribeGroups report them."""

from __future__ import annotations

from quorate.broker.groups.group import Group
from quorate.broker.groups.state import State
from quorate.quorum.clipped import clipped
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.group_admin import (
    DescribedGroup,
    DescribedGroupMember,
    ListedGroup,
)

GROUP_TYPE = "classic"
"""The type of every group in ListGroups (KIP-848)."""


def describe(group: Group) -> DescribedGroup:
    """Return the description of a group.

    The protocol and the members' metadata are included only if the group is Stable, because the
    protocol may still change in other states."""
    protocol = group.protocol if group.state is State.STABLE else None
    return DescribedGroup(
        error_code=ErrorCode.NONE,
        group_id=group.id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=protocol or "",
        members=tuple(
            DescribedGroupMember(
                member_id=each.id,
                group_instance_id=each.instance_id,
                client_id=each.client_id,
                client_host=each.client_host,
                member_metadata=each.protocols[protocol] if protocol is not None else b"",
                member_assignment=each.assignment,
            )
            for each in group.members.values()
        ),
    )


def not_described(
    group_id: str, error: ErrorCode, message: str | None = None, state: str = ""
) -> DescribedGroup:
    """Return a description that carries an error."""
    return DescribedGroup(
        error_code=error,
        error_message=message,
        group_id=group_id,
        group_state=state,
        protocol_type="",
        protocol_data="",
        members=(),
    )


def unknown(group_id: str) -> DescribedGroup:
    """Return the description of a group that does not exist: Dead, with GROUP_ID_NOT_FOUND."""
    message = f"Group {clipped(group_id)} not found."
    return not_described(group_id, ErrorCode.GROUP_ID_NOT_FOUND, message, State.DEAD.value)


def listed(group: Group) -> ListedGroup:
    """Return the entry of the group in ListGroups."""
    return ListedGroup(
        group_id=group.id,
        protocol_type=group.protocol_type or "",
        group_state=group.state.value,
        group_type=GROUP_TYPE,
    )


def passes(group: Group, states: frozenset[str], types: frozenset[str]) -> bool:
    """Return True if the group passes both filters, whose names are in lower case.

    An empty filter passes every group."""
    wanted_state = not states or group.state.value.lower() in states
    return wanted_state and (not types or GROUP_TYPE in types)
