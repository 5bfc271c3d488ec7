"""The consumer groups of a cluster with the lag of each partition.

Every reading lists all groups, and describes the next GROUPS_PER_READING of them, so that its cost
has a bound. The committed offsets are read before the log end offsets, so that no lag is too small
because of the time between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from quorate.cli.client.admin import Admin
from quorate.cli.client.errors import Refused
from quorate.cli.client.groups import Place, assigned
from quorate.cli.console.views.answers import Notes, answers_of
from quorate.cli.console.views.group_rows import (
    GROUPS,
    OFFSETS,
    Group,
    Offset,
    group_rows,
    next_names,
    offset_rows,
    within,
)
from quorate.cli.console.views.log_ends import ends_of
from quorate.cli.console.views.table import Table
from quorate.cli.status.cluster_status import Status
from quorate.cli.topics.topic_view import TopicView
from quorate.quorum.ids import uuid_to_text
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas import group_admin, group_offsets

GROUPS_PER_READING = 200
"""The most groups whose members and offsets one reading asks for."""
MAX_GROUPS = 5_000
"""The most groups that the table has."""
MAX_OFFSETS = 50_000
"""The most partitions of all groups together whose offsets are kept."""
CONSUMERS = "consumer"
"""The protocol type of groups of consumers."""


class GroupsView:
    """The groups of the last readings. The thread of the watcher owns it."""

    COLUMNS: ClassVar = {"groups": GROUPS, "lags": OFFSETS}

    def __init__(self) -> None:
        self._known: dict[str, Group] = {}
        self._last = ""

    def read(
        self, admin: Admin, status: Status, topics: Sequence[TopicView]
    ) -> Mapping[str, Table]:
        """Return the tables `groups` and `lags`. Raise Refused if a broker does not serve
        the requests."""
        notes = Notes()
        listed = listed_groups(admin, notes)
        if len(listed) > MAX_GROUPS:
            notes.add(f"{len(listed)} groups exist, of which the first {MAX_GROUPS} are shown")
            listed = dict(sorted(listed.items())[:MAX_GROUPS])
        self._known = {
            name: replace(
                self._known.get(name, each), state=each.state, coordinator=each.coordinator
            )
            for name, each in listed.items()
        }
        names = next_names(sorted(listed), self._last, GROUPS_PER_READING)
        self._last = names[-1] if names else ""
        described = described_groups(admin, [listed[name] for name in names], topics, notes)
        self._known, left_out = within({**self._known, **described}, MAX_OFFSETS)
        if left_out:
            notes.add(f"the lags of {left_out} groups are left out: {MAX_OFFSETS} offsets are kept")
        waiting = sum(each.members is None for each in self._known.values()) - left_out
        if waiting > 0:
            notes.add(f"{waiting} groups are not described")
        groups = self._known.values()
        return {
            "groups": Table(GROUPS, group_rows(groups), str(notes)),
            "lags": Table(OFFSETS, offset_rows(groups), str(notes)),
        }


def listed_groups(admin: Admin, notes: Notes) -> dict[str, Group]:
    """Return the groups that the brokers coordinate, by name. They have no members and offsets.

    Raise NotReachable if no node returns the metadata, and Refused as `answers_of` does."""
    requests = {
        each.node_id: group_admin.ListGroupsRequest() for each in admin.metadata(()).brokers
    }
    found: dict[str, Group] = {}
    answers = answers_of(admin, requests, group_admin.ListGroupsResponse, notes)
    for broker, answer in answers.items():
        if answer.error_code:
            notes.add(f"broker {broker} lists no groups: {ErrorCode.of(answer.error_code).name}")
        for each in answer.groups:
            found[each.group_id] = Group(
                name=each.group_id, state=each.group_state, coordinator=broker
            )
    return found


def described_groups(
    admin: Admin, groups: Sequence[Group], topics: Sequence[TopicView], notes: Notes
) -> dict[str, Group]:
    """Return the groups with their members and offsets, by name. A group that its coordinator does
    not describe is left out. Raise Refused as `answers_of` does."""
    names: dict[int, list[str]] = {}
    for each in groups:
        names.setdefault(each.coordinator, []).append(each.name)
    asked = {
        broker: group_admin.DescribeGroupsRequest(groups=tuple(some))
        for broker, some in names.items()
    }
    described = answers_of(admin, asked, group_admin.DescribeGroupsResponse, notes)
    members = {
        each.group_id: each
        for answer in described.values()
        for each in answer.groups
        if not each.error_code
    }
    committed = committed_offsets(admin, names, topics, notes)
    owners = {name: owners_of(each) for name, each in members.items()}
    places = {
        name: sorted({*committed[name], *owners[name]}) for name in members if name in committed
    }
    leaders = {
        (topic.name, each.partition): each.leader for topic in topics for each in topic.partitions
    }
    wanted = {place for some in places.values() for place in some}
    led = [(leader, each) for each in sorted(wanted) if (leader := leaders.get(each)) is not None]
    ends = {place: end for (_, place), end in ends_of(admin, led, notes).items()}
    listed = {each.name: each for each in groups}
    return {
        name: replace(
            listed[name],
            protocol=members[name].protocol_data,
            members=len(members[name].members),
            offsets=tuple(
                offset_of(each, committed[name], ends, owners[name]) for each in places[name]
            ),
        )
        for name in places
    }


def offset_of(
    place: Place,
    committed: Mapping[Place, int],
    ends: Mapping[Place, int],
    owners: Mapping[Place, tuple[str, str]],
) -> Offset:
    """Return the offset of one partition, with its owner's client id and host."""
    client, host = owners.get(place, ("", ""))
    return Offset(
        place=place, committed=committed.get(place), end=ends.get(place), client=client, host=host
    )


def owners_of(group: group_admin.DescribedGroup) -> dict[Place, tuple[str, str]]:
    """Return the client id and the host of the owner of each partition. A group that does not
    consume, such as that of a Connect worker, has no owners. A member whose assignment cannot be
    decoded owns nothing."""
    owners: dict[Place, tuple[str, str]] = {}
    if group.protocol_type != CONSUMERS:
        return owners
    for member in group.members:
        try:
            places = assigned(bytes(member.member_assignment))
        except Refused:
            continue
        for place in places:
            owners[place] = member.client_id, member.client_host
    return owners


def committed_offsets(
    admin: Admin, names: Mapping[int, Sequence[str]], topics: Sequence[TopicView], notes: Notes
) -> dict[str, dict[Place, int]]:
    """Return the committed offsets of groups, by group. `names` are the groups of each coordinator.

    A group with an error is left out, as are partitions of unknown topics and those with an error.
    Raise Refused as `answers_of` does."""
    requests = {
        broker: group_offsets.OffsetFetchRequest(
            groups=tuple(
                group_offsets.OffsetFetchRequestGroup(group_id=each, topics=None) for each in some
            )
        )
        for broker, some in names.items()
    }
    by_id = {each.topic_id: each.name for each in topics}
    answers = answers_of(admin, requests, group_offsets.OffsetFetchResponse, notes)
    return {
        group.group_id: {
            (name, each.partition_index): each.committed_offset
            for topic in group.topics
            if (name := topic.name or by_id.get(uuid_to_text(topic.topic_id)))
            for each in topic.partitions
            if not each.error_code and each.committed_offset >= 0
        }
        for answer in answers.values()
        for group in answer.groups
        if not group.error_code
    }
