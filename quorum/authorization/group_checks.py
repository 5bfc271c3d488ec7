"""The checks of requests about consumer groups and their offsets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from quorate.quorum.authorization.check import (
    ITEM_ENTRIES,
    Check,
    Checked,
    added_to,
    divided,
    on_each,
    only,
)
from quorate.quorum.authorization.permits import DENIED, Permits
from quorate.quorum.ids import ZERO_UUID
from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.metadata.pace import Pace
from quorate.quorum.protocol.acl_codes import Operation, ResourceType
from quorate.quorum.protocol.authorized_operations import NOT_REQUESTED
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas import find_coordinator as coordinators
from quorate.quorum.protocol.schemas import group_admin as admin
from quorate.quorum.protocol.schemas import group_offsets as offsets

GROUP, TOPIC = ResourceType.GROUP, ResourceType.TOPIC
DENIED_GROUP, DENIED_TOPIC = DENIED[GROUP], DENIED[TOPIC]
ERROR_SINCE = 2
"""The first version of OffsetFetch whose response has an error of the whole request."""
GROUPS_SINCE = 8
"""The first version of OffsetFetch that names several groups."""
SEVERAL_KEYS_SINCE = 4
"""The first version of FindCoordinator that names several keys."""
NO_OFFSET = -1
KEY_TYPES = {0: ResourceType.GROUP, 1: ResourceType.TRANSACTIONAL_ID}
"""The resource type of each key type of FindCoordinator."""


def may_use(permits: Permits, operation: Operation, topic: Any) -> bool:
    """Return True if the client may perform the operation on a topic that a request names by its
    name or id. An unknown id is no secret, so its check is left to the handler."""
    topic_id = getattr(topic, "topic_id", ZERO_UUID)
    name = topic.name if topic_id == ZERO_UUID else permits.name_of(topic_id)
    return name is None or permits.topic(operation, name)


def _not_committed(topic: offsets.OffsetCommitRequestTopic, error: ErrorCode) -> object:
    return offsets.OffsetCommitResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=tuple(
            offsets.OffsetCommitResponsePartition(
                partition_index=each.partition_index, error_code=error
            )
            for each in topic.partitions
        ),
    )


def offset_commit(
    permits: Permits, request: offsets.OffsetCommitRequest, version: int
) -> IncrementalWork[Checked]:
    """Require READ on the group and on each topic."""
    if not permits.allows(Operation.READ, GROUP, request.group_id):
        refused: Any = tuple(_not_committed(each, DENIED_GROUP) for each in request.topics)
        return Checked(request, answer=offsets.OffsetCommitResponse(topics=refused))
    kept, others = yield from divided(
        request.topics, lambda each: may_use(permits, Operation.READ, each)
    )
    if not others:
        return Checked(request)
    more = tuple(_not_committed(each, DENIED_TOPIC) for each in others)
    return Checked(replace(request, topics=kept), added_to("topics", more))


def offset_delete(
    permits: Permits, request: offsets.OffsetDeleteRequest, version: int
) -> IncrementalWork[Checked]:
    """Require DELETE on the group and READ on each topic."""
    if not permits.allows(Operation.DELETE, GROUP, request.group_id):
        return Checked(request, error=DENIED_GROUP)
    kept, others = yield from divided(
        request.topics, lambda each: permits.topic(Operation.READ, each.name)
    )
    if not others:
        return Checked(request)
    more = tuple(
        offsets.OffsetDeleteResponseTopic(
            name=topic.name,
            partitions=tuple(
                offsets.OffsetDeleteResponsePartition(
                    partition_index=each.partition_index, error_code=DENIED_TOPIC
                )
                for each in topic.partitions
            ),
        )
        for topic in others
    )

    def amend(response: offsets.OffsetDeleteResponse) -> IncrementalWork[object]:
        yield from ()
        if response.error_code:  # an error of the whole request has no topics beside it
            return response
        return replace(response, topics=(*response.topics, *more))

    return Checked(replace(request, topics=kept), amend)


def offset_fetch(
    permits: Permits, request: offsets.OffsetFetchRequest, version: int
) -> IncrementalWork[Checked]:
    """Require DESCRIBE on each group and topic. If all topics of a group are asked for, those that
    the client may not describe are left out."""
    if version >= GROUPS_SINCE:
        return (yield from _fetch_of_groups(permits, request))
    if not permits.allows(Operation.DESCRIBE, GROUP, request.group_id):
        named = () if version >= ERROR_SINCE else request.topics or ()
        topics = tuple(_not_fetched(each, DENIED_GROUP) for each in named)
        answer = offsets.OffsetFetchResponse(topics=topics, error_code=DENIED_GROUP)
        return Checked(request, answer=answer)
    if request.topics is None:
        return Checked(request, only("topics", lambda each: _is_visible(permits, each)))
    kept, others = yield from divided(
        request.topics, lambda each: permits.topic(Operation.DESCRIBE, each.name)
    )
    if not others:
        return Checked(request)
    more = tuple(_not_fetched(each, DENIED_TOPIC) for each in others)
    return Checked(replace(request, topics=kept), added_to("topics", more))


def _is_visible(permits: Permits, topic: Any) -> bool:
    topic_id = getattr(topic, "topic_id", ZERO_UUID)
    name = topic.name if topic_id == ZERO_UUID else permits.name_of(topic_id)
    return permits.allows(Operation.DESCRIBE, TOPIC, name or "", audited=False)


def _not_fetched(topic: Any, error: ErrorCode) -> offsets.OffsetFetchResponseTopic:
    return offsets.OffsetFetchResponseTopic(
        name=topic.name,
        partitions=tuple(
            offsets.OffsetFetchResponsePartition(
                partition_index=each, committed_offset=NO_OFFSET, metadata="", error_code=error
            )
            for each in topic.partition_indexes
        ),
    )


def _fetch_of_groups(
    permits: Permits, request: offsets.OffsetFetchRequest
) -> IncrementalWork[Checked]:
    kept, others = yield from divided(
        request.groups, lambda each: permits.allows(Operation.DESCRIBE, GROUP, each.group_id)
    )
    refused = tuple(
        offsets.OffsetFetchResponseGroup(group_id=each.group_id, error_code=DENIED_GROUP)
        for each in others
    )
    groups: list[offsets.OffsetFetchRequestGroup] = []
    denied: dict[str, tuple[Any, ...]] = {}
    for group in kept:
        topics, left = yield from divided(
            group.topics or (), lambda each: may_use(permits, Operation.DESCRIBE, each)
        )
        denied[group.group_id] = tuple(map(_not_fetched_of_group, left))
        groups.append(replace(group, topics=topics) if left else group)
    every = frozenset(each.group_id for each in kept if each.topics is None)

    def amend(response: offsets.OffsetFetchResponse) -> IncrementalWork[object]:
        found, pace = [], Pace()
        for group in response.groups:
            if pace.is_time(ITEM_ENTRIES):
                yield
            topics = group.topics
            if group.group_id in every:
                topics, _ = yield from divided(topics, lambda each: _is_visible(permits, each))
            elif not group.error_code:
                topics = (*topics, *denied.get(group.group_id, ()))
            found.append(replace(group, topics=topics))
        return replace(response, groups=(*found, *refused))

    return Checked(replace(request, groups=tuple(groups)), amend)


def _not_fetched_of_group(topic: Any) -> offsets.OffsetFetchResponseTopics:
    return offsets.OffsetFetchResponseTopics(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=tuple(
            offsets.OffsetFetchResponsePartitions(
                partition_index=each,
                committed_offset=NO_OFFSET,
                metadata="",
                error_code=DENIED_TOPIC,
            )
            for each in topic.partition_indexes
        ),
    )


def find_coordinator(
    permits: Permits, request: coordinators.FindCoordinatorRequest, version: int
) -> IncrementalWork[Checked]:
    """Require DESCRIBE on each group or transactional id. The check precedes the creation of the
    internal topic."""
    kind = KEY_TYPES.get(request.key_type)
    if kind is None:
        return Checked(request)
    error = DENIED[kind]
    if version < SEVERAL_KEYS_SINCE:
        if permits.allows(Operation.DESCRIBE, kind, request.key):
            return Checked(request)
        answer = coordinators.FindCoordinatorResponse(
            error_code=error, error_message=error.message, node_id=-1, host="", port=-1
        )
        return Checked(request, answer=answer)
    kept, others = yield from divided(
        request.coordinator_keys, lambda key: permits.allows(Operation.DESCRIBE, kind, key)
    )
    if not others:
        return Checked(request)
    more = tuple(
        coordinators.Coordinator(
            key=key,
            node_id=-1,
            host="",
            port=-1,
            error_code=error,
            error_message=error.message,
        )
        for key in others
    )
    if not kept:
        return Checked(request, answer=coordinators.FindCoordinatorResponse(coordinators=more))
    return Checked(replace(request, coordinator_keys=kept), added_to("coordinators", more))


def list_groups(
    permits: Permits, request: admin.ListGroupsRequest, version: int
) -> IncrementalWork[Checked]:
    """Show all groups to clients with DESCRIBE on the cluster, and to others those that they may
    describe."""
    yield from ()
    if permits.cluster(Operation.DESCRIBE, audited=False):
        return Checked(request)

    def visible(group: admin.ListedGroup) -> bool:
        return permits.allows(Operation.DESCRIBE, GROUP, group.group_id, audited=False)

    return Checked(request, only("groups", visible))


def describe_groups(
    permits: Permits, request: admin.DescribeGroupsRequest, version: int
) -> IncrementalWork[Checked]:
    """Require DESCRIBE on each group, and compute the operations that the client may perform."""
    kept, others = yield from divided(
        request.groups, lambda each: permits.allows(Operation.DESCRIBE, GROUP, each)
    )
    more = tuple(
        admin.DescribedGroup(
            error_code=DENIED_GROUP,
            error_message=DENIED_GROUP.message,
            group_id=each,
            group_state="",
            protocol_type="",
            protocol_data="",
            members=(),
        )
        for each in others
    )

    def amend(response: admin.DescribeGroupsResponse) -> IncrementalWork[object]:
        pace, found = Pace(), []
        for group in response.groups:
            if pace.is_time(ITEM_ENTRIES):
                yield
            if group.authorized_operations != NOT_REQUESTED:
                operations = permits.operations(GROUP, group.group_id)
                group = replace(group, authorized_operations=operations)
            found.append(group)
        return replace(response, groups=(*found, *more))

    return Checked(replace(request, groups=kept) if others else request, amend)


delete_groups: Check = on_each(
    "groups_names",
    Operation.DELETE,
    GROUP,
    name=str,
    results="results",
    denied=lambda group, error: admin.DeletableGroupResult(group_id=group, error_code=error),
)
