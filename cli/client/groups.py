"""Requests about consumer groups, which go to each group's coordinator.

The coordinator is looked up for each attempt, so that a request follows a coordinator that
moves."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

from quorate.cli.client.admin import Admin, check
from quorate.cli.client.connection import ConnectionLost
from quorate.cli.client.errors import NotReachable, Refused
from quorate.quorum.ids import ZERO_UUID, Uuid
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas import group_admin, group_offsets
from quorate.quorum.protocol.schemas.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from quorate.quorum.protocol.wire import Message

R = TypeVar("R", bound=Message)
Place = tuple[str, int]
"""A topic and the number of a partition."""

RETRY_DELAY_MS = 100
MIN_WAIT_S = 0.1
"""The least time that a request gets, even if the deadline is nearer."""
MOVED = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    }
)
"""Errors after which the coordinator is looked up again."""


class Member(NamedTuple):
    """The member id and the generation of a commit.

    The defaults identify no member. The coordinator accepts them for a group without members."""

    id: str = ""
    generation: int = -1


class Groups:
    """The group requests of one Admin, owned by its thread. It keeps no state of its own."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin

    def coordinator(self, group: str) -> tuple[int, str, int]:
        """Return the id, host and port of the group's coordinator.

        Raise Refused if there is still none after the Admin's timeout, NotReachable if no node
        answers."""
        request = FindCoordinatorRequest(key=group, coordinator_keys=(group,))

        def errors(answer: FindCoordinatorResponse) -> Iterable[int]:
            return [answer.error_code, *(each.error_code for each in answer.coordinators)]

        answer = self._admin.ask(request, FindCoordinatorResponse, errors)
        for code in errors(answer):
            check(code, None, f"group {group}")
        if answer.coordinators:
            found = answer.coordinators[0]
            return found.node_id, found.host, found.port
        return answer.node_id, answer.host, answer.port

    def names(
        self, states: Sequence[str] = (), types: Sequence[str] = ()
    ) -> list[group_admin.ListedGroup]:
        """Return all groups, sorted by id, in one of `states` and of one of `types` (empty: any).

        Every broker is asked, because a broker lists only the groups that it coordinates. Raise
        Refused if one of them answers with an error, NotReachable if one does not answer in
        time."""
        request = group_admin.ListGroupsRequest(
            states_filter=tuple(states), types_filter=tuple(types)
        )
        found: list[group_admin.ListedGroup] = []
        for broker in self._admin.metadata(()).brokers:
            answer = self._asked_until(
                f"broker {broker.node_id}",
                partial(int, broker.node_id),
                request,
                group_admin.ListGroupsResponse,
                lambda answer: [answer.error_code],
            )
            check(answer.error_code, None, f"broker {broker.node_id}")
            found += answer.groups
        return sorted(found, key=lambda each: each.group_id)

    def describe(self, group: str) -> group_admin.DescribedGroup:
        """Return the description of a group, which may hold an error code.

        A group that does not exist has the state Dead."""
        answer = self.ask(
            group,
            group_admin.DescribeGroupsRequest(groups=(group,)),
            group_admin.DescribeGroupsResponse,
            lambda answer: [each.error_code for each in answer.groups],
        )
        return answer.groups[0]

    def offsets(self, group: str) -> dict[Place, int]:
        """Return all committed offsets of a group. Raise Refused on an error of the group.

        Offsets of deleted topics that the coordinator names only by id are left out. Partitions
        with an error or without a committed offset are left out, too."""
        request = group_offsets.OffsetFetchRequest(
            group_id=group,
            topics=None,
            groups=(group_offsets.OffsetFetchRequestGroup(group_id=group, topics=None),),
        )
        answer = self.ask(
            group,
            request,
            group_offsets.OffsetFetchResponse,
            lambda answer: [answer.error_code, *(each.error_code for each in answer.groups)],
        )
        (found,) = answer.groups
        check(found.error_code, None, f"group {group}")
        names = {topic_id: name for name, topic_id in self._topic_ids().items()}
        return {
            (topic.name or names[topic.topic_id], each.partition_index): each.committed_offset
            for topic in found.topics
            if topic.name or topic.topic_id in names
            for each in topic.partitions
            if each.committed_offset >= 0
        }

    def commit(self, group: str, offsets: Mapping[Place, int]) -> None:
        """Commit offsets for a group that has no members.

        Raise Refused if the coordinator refuses a partition. The others may then be committed."""
        check(self.try_commit(group, offsets, Member()), None, f"group {group}")

    def try_commit(self, group: str, offsets: Mapping[Place, int], member: Member) -> int:
        """Commit offsets as `member`, and return the first error code of the response, or NONE.

        If only some partitions have an error, the offsets of the others are committed."""
        topics: dict[str, list[group_offsets.OffsetCommitRequestPartition]] = {}
        for (topic, partition), offset in sorted(offsets.items()):
            topics.setdefault(topic, []).append(
                group_offsets.OffsetCommitRequestPartition(
                    partition_index=partition, committed_offset=offset, committed_metadata=""
                )
            )
        ids = self._topic_ids()
        request = group_offsets.OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=member.generation,
            member_id=member.id,
            topics=tuple(
                group_offsets.OffsetCommitRequestTopic(
                    name=name, topic_id=ids.get(name, ZERO_UUID), partitions=tuple(partitions)
                )
                for name, partitions in topics.items()
            ),
        )

        def errors(answer: group_offsets.OffsetCommitResponse) -> list[int]:
            return [each.error_code for topic in answer.topics for each in topic.partitions]

        answer = self.ask(group, request, group_offsets.OffsetCommitResponse, errors)
        return next((code for code in errors(answer) if code), ErrorCode.NONE)

    def _topic_ids(self) -> dict[str, Uuid]:
        """Return the ids of all topics by name.

        The coordinator stores offsets by topic name. Version 10 of OffsetCommit and OffsetFetch
        names topics by id only (KIP-848)."""
        topics = self._admin.metadata(None).topics
        return {each.name: each.topic_id for each in topics if each.name is not None}

    def delete(self, group: str) -> ErrorCode:
        """Delete a group and return the error of the response, or NONE.

        After a lost connection the request is repeated, and may then report that the group does not
        exist although this call has deleted it."""
        answer = self.ask(
            group,
            group_admin.DeleteGroupsRequest(groups_names=(group,)),
            group_admin.DeleteGroupsResponse,
            lambda answer: [each.error_code for each in answer.results],
        )
        return ErrorCode.of(answer.results[0].error_code)

    def delete_offsets(
        self, group: str, topic: str, partitions: Iterable[int]
    ) -> dict[Place, ErrorCode]:
        """Delete committed offsets, and return the error of each partition.

        Raise Refused on an error of the group."""
        request = group_offsets.OffsetDeleteRequest(
            group_id=group,
            topics=(
                group_offsets.OffsetDeleteRequestTopic(
                    name=topic,
                    partitions=tuple(
                        group_offsets.OffsetDeleteRequestPartition(partition_index=each)
                        for each in partitions
                    ),
                ),
            ),
        )
        answer = self.ask(
            group, request, group_offsets.OffsetDeleteResponse, lambda answer: [answer.error_code]
        )
        check(answer.error_code, None, f"group {group}")
        return {
            (found.name, each.partition_index): ErrorCode.of(each.error_code)
            for found in answer.topics
            for each in found.partitions
        }

    def ask(
        self,
        group: str,
        request: Message,
        response: type[R],
        errors: Callable[[R], Iterable[int]],
        *,
        patience_s: float | None = None,
    ) -> R:
        """Send a request to the group's coordinator and return its response.

        Send it again after a lost connection, even if the coordinator may have carried it out, or
        if `errors` returns an error of MOVED. All other errors remain in the response.

        Raise NotReachable if no coordinator answers within `patience_s`; None means the timeout of
        the Admin. The search for the coordinator has the Admin's own timeout in addition. Raise
        Refused if there is no coordinator, or if it does not serve the API."""
        return self._asked_until(
            f"the coordinator of group {group}",
            lambda: self.coordinator(group)[0],
            request,
            response,
            errors,
            patience_s,
        )

    def _asked_until(
        self,
        what: str,
        node: Callable[[], int],
        request: Message,
        response: type[R],
        errors: Callable[[R], Iterable[int]],
        patience_s: float | None = None,
    ) -> R:
        """Send a request to the node until it answers without a coordinator error.

        After a lost connection the request is sent again, although the coordinator may have carried
        it out. A repetition changes nothing more, but a repeated deletion may report that the group
        does not exist. Raise NotReachable when the time is over."""
        if patience_s is None:
            patience_s = self._admin.timeout_ms / 1000
        deadline = time.monotonic() + patience_s
        while True:
            left_s = max(MIN_WAIT_S, deadline - time.monotonic())
            try:
                answer = self._admin.ask_node(node(), request, response, left_s)
            except ConnectionLost as error:
                failure = str(error)
                self._admin.metadata(())
            else:
                moved = [code for code in errors(answer) if ErrorCode.of(code) in MOVED]
                if not moved:
                    return answer
                failure = ErrorCode.of(moved[0]).name
            if time.monotonic() >= deadline:
                raise NotReachable(f"{what} did not answer within {patience_s:g} s: {failure}")
            self._admin.wait(RETRY_DELAY_MS / 1000)


def assigned(data: bytes) -> list[Place]:
    """Return the sorted partitions of an assignment in the consumer protocol.

    Only the fields of version 0 are read: topics and their partitions. Raise Refused if the bytes
    are malformed."""
    if not data:
        return []
    places: list[Place] = []
    try:
        _, count = struct.unpack_from(">hi", data)
        position = 6
        for _ in range(count):
            (size,) = struct.unpack_from(">h", data, position)
            topic = data[position + 2 : position + 2 + size].decode()
            position += 2 + size
            (partitions,) = struct.unpack_from(">i", data, position)
            position += 4
            numbers = struct.unpack_from(f">{partitions}i", data, position)
            places += [(topic, each) for each in numbers]
            position += 4 * partitions
    except (struct.error, UnicodeDecodeError) as error:
        raise Refused(f"the group has an assignment that cannot be decoded: {error}") from None
    return sorted(places)
