"""Handles ListGroups (API key 16), DescribeGroups (15) and DeleteGroups (42)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from quorate.broker.groups import descriptions
from quorate.broker.groups.coordinator import GroupCoordinator
from quorate.broker.groups.descriptions import not_described
from quorate.broker.groups.shard import Shard
from quorate.broker.kafka.groups.group_requests import ask
from quorate.broker.kafka.shared.result_collector import ResultCollector
from quorate.quorum.incremental_work import IncrementalWork, begun
from quorate.quorum.metadata.pace import STEP_ENTRIES, Pace
from quorate.quorum.protocol.authorized_operations import GROUP_OPERATIONS
from quorate.quorum.protocol.errors import ErrorCode, KafkaError
from quorate.quorum.protocol.schemas.group_admin import (
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

ENTRIES, ASK_ENTRIES, CHARS_PER_ENTRY = 2, 20, 16
"""The weights of a listed group and of a request to a shard, in entries of a step (`Pace`), and the
number of characters of a group id whose hash weighs one entry."""
NOT_FOUND_SINCE = 6
"""The first DescribeGroups version with GROUP_ID_NOT_FOUND. Before, an unknown group is described
as Dead, without an error (KIP-1043)."""


@dataclass(frozen=True, slots=True)
class GroupAdminHandler:
    """Handles the admin requests for groups on one broker, on the broker's event loop."""

    coordinator: GroupCoordinator

    def list(
        self, context: RequestContext, request: ListGroupsRequest
    ) -> IncrementalWork[None] | None:
        """Respond with the groups of this broker that pass the filters.

        The error is COORDINATOR_LOAD_IN_PROGRESS while a shard is loading, because the list would
        be incomplete. The groups of a shard that failed to load are missing without an error.
        Return the steps that are left, or None.
        """
        return begun(self._list(context, request))

    def _list(self, context: RequestContext, request: ListGroupsRequest) -> IncrementalWork[None]:
        states = frozenset(each.lower() for each in request.states_filter)
        types = frozenset(each.lower() for each in request.types_filter)
        pace = Pace()
        error = ErrorCode.NONE
        groups: list[ListedGroup] = []
        try:
            for shard_context in tuple(self.coordinator.ready_shards()):
                for group in tuple(shard_context.shard.groups.values()):
                    if descriptions.passes(group, states, types):
                        groups.append(descriptions.listed(group))
                    if pace.is_time(ENTRIES):
                        context.count_elements(STEP_ENTRIES // ENTRIES)
                        yield
        except KafkaError as refusal:
            error = refusal.code
        yield from context.respond_steps(ListGroupsResponse(error_code=error, groups=tuple(groups)))

    def describe(
        self, context: RequestContext, request: DescribeGroupsRequest
    ) -> IncrementalWork[None] | None:
        """Respond with the description of each group, or with an error for it.

        A group that the request names twice is described once. Return the steps that are left, or
        None.
        """
        return begun(self._describe(context, request))

    def _describe(
        self, context: RequestContext, request: DescribeGroupsRequest
    ) -> IncrementalWork[None]:
        names = tuple(dict.fromkeys(request.groups))
        asked = request.include_authorized_operations

        def shown(group: DescribedGroup) -> DescribedGroup:
            missing = group.error_code == ErrorCode.GROUP_ID_NOT_FOUND
            if missing and context.version < NOT_FOUND_SINCE:
                group = dataclasses.replace(group, error_code=ErrorCode.NONE)
            if asked and not group.error_code:
                group = dataclasses.replace(group, authorized_operations=GROUP_OPERATIONS)
            return group

        def take(slot: Callable[[DescribedGroup], None], group: DescribedGroup) -> None:
            slot(shown(group))

        def respond(groups: Sequence[DescribedGroup]) -> None:
            response = DescribeGroupsResponse(groups=tuple(groups))
            context.run(context.respond_steps(response))

        collector, pace = ResultCollector(len(names), context.callback(respond)), Pace()
        for index, group_id in enumerate(names):
            if pace.is_time(ASK_ENTRIES + len(group_id) // CHARS_PER_ENTRY):
                yield
            ask(
                self.coordinator,
                group_id,
                partial(Shard.describe, group_id=group_id),
                partial(take, collector.slot(index)),
                partial(not_described, group_id),
            )

    def delete(
        self, context: RequestContext, request: DeleteGroupsRequest
    ) -> IncrementalWork[None] | None:
        """Delete the named groups and their offsets, and respond with the result of each.

        A group that the request names twice is deleted once. The errors of a group are those of
        `Shard.delete` and of `GroupCoordinator.find`. Return the steps that are left, or None.
        """
        return begun(self._delete(context, request))

    def _delete(
        self, context: RequestContext, request: DeleteGroupsRequest
    ) -> IncrementalWork[None]:
        names = tuple(dict.fromkeys(request.groups_names))

        def respond(results: Sequence[DeletableGroupResult]) -> None:
            response = DeleteGroupsResponse(throttle_time_ms=0, results=tuple(results))
            context.run(context.respond_steps(response))

        collector, pace = ResultCollector(len(names), context.callback(respond)), Pace()
        for index, group_id in enumerate(names):
            if pace.is_time(ASK_ENTRIES + len(group_id) // CHARS_PER_ENTRY):
                yield
            self._delete_group(context, group_id, collector.slot(index))

    def _delete_group(
        self,
        context: RequestContext,
        group_id: str,
        take: Callable[[DeletableGroupResult], None],
    ) -> None:
        """Delete the group in parts (`Shard.delete`), each after the commit of the one before."""

        def done(outcome: DeletableGroupResult | None) -> None:
            if outcome is None:
                context.run(go_on())
            else:
                take(outcome)

        def go_on() -> IncrementalWork[None]:
            yield  # a batch is committed at once if no other replica is in sync
            self._delete_group(context, group_id, take)

        ask(
            self.coordinator,
            group_id,
            partial(deleted, group_id=group_id),
            done,
            partial(result, group_id),
        )


def deleted(shard: Shard, group_id: str) -> DeletableGroupResult | None:
    """Delete the group or a part of it. Return its result, or None if a part is left.

    Raise KafkaError as `Shard.delete` does."""
    return result(group_id, ErrorCode.NONE) if shard.delete(group_id) else None


def result(group_id: str, error: ErrorCode) -> DeletableGroupResult:
    """Return the DeleteGroups result of one group."""
    return DeletableGroupResult(group_id=group_id, error_code=error)
