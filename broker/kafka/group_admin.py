"""ListGroups (16), DescribeGroups (15) and DeleteGroups (42)."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import partial

from quorate.broker.groups.coordinator import GroupCoordinator
from quorate.broker.groups.descriptions import not_described
from quorate.broker.groups.shard import Shard
from quorate.broker.kafka.gathering import Gathering
from quorate.broker.kafka.group_requests import ask
from quorate.quorum.rpc.kafka.authorized_operations import GROUP_OPERATIONS
from quorate.quorum.rpc.kafka.errors import ErrorCode, KafkaError
from quorate.quorum.rpc.kafka.schemas.group_admin import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)
from quorate.quorum.rpc.kafka.server import RequestContext

NOT_FOUND_SINCE = 6
"""Before that version of DescribeGroups, a group that does not exist is one that is Dead."""


@dataclass(frozen=True, slots=True)
class GroupAdminHandler:
    coordinator: GroupCoordinator

    def list(self, context: RequestContext, request: ListGroupsRequest) -> None:
        error = ErrorCode.NONE
        groups: list[ListedGroup] = []
        try:
            for led in self.coordinator.all_led():
                groups += led.shard.list(request.states_filter, request.types_filter)
        except KafkaError as refusal:
            error = refusal.code
        context.respond(ListGroupsResponse(error_code=error, groups=tuple(groups)))

    def describe(self, context: RequestContext, request: DescribeGroupsRequest) -> None:
        asked = request.include_authorized_operations

        def shown(group: DescribedGroup) -> DescribedGroup:
            missing = group.error_code == ErrorCode.GROUP_ID_NOT_FOUND
            if missing and context.version < NOT_FOUND_SINCE:
                group = dataclasses.replace(group, error_code=ErrorCode.NONE)
            if asked and not group.error_code:
                group = dataclasses.replace(group, authorized_operations=GROUP_OPERATIONS)
            return group

        gathering = Gathering[DescribedGroup](
            len(request.groups),
            lambda groups: context.respond(
                DescribeGroupsResponse(groups=tuple(shown(each) for each in groups))
            ),
        )
        for index, group_id in enumerate(request.groups):
            ask(
                self.coordinator,
                group_id,
                partial(Shard.describe, group_id=group_id),
                gathering.slot(index),
                partial(not_described, group_id),
            )

    def delete(self, context: RequestContext, request: DeleteGroupsRequest) -> None:
        names = tuple(dict.fromkeys(request.groups_names))
        gathering = Gathering[DeletableGroupResult](
            len(names),
            lambda results: context.respond(
                DeleteGroupsResponse(throttle_time_ms=0, results=tuple(results))
            ),
        )
        for index, group_id in enumerate(names):
            ask(
                self.coordinator,
                group_id,
                partial(deleted, group_id=group_id),
                gathering.slot(index),
                partial(result, group_id),
            )


def deleted(shard: Shard, group_id: str) -> DeletableGroupResult:
    shard.delete(group_id)
    return result(group_id, ErrorCode.NONE)


def result(group_id: str, error: ErrorCode) -> DeletableGroupResult:
    return DeletableGroupResult(group_id=group_id, error_code=error)
