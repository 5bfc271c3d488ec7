"""The checks of requests about topics and their records, except Metadata, Produce and Fetch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any

from quorate.quorum.authorization.check import (
    Check,
    Checked,
    added_to,
    divided,
    on_each,
)
from quorate.quorum.authorization.permits import DENIED, Permits
from quorate.quorum.ids import ZERO_UUID
from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.metadata.pace import Pace
from quorate.quorum.protocol.acl_codes import Operation, ResourceType
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas import describe_producers as producers
from quorate.quorum.protocol.schemas import list_offsets as offsets
from quorate.quorum.protocol.schemas import offset_for_leader_epoch as epochs
from quorate.quorum.protocol.schemas import topics

TOPIC = ResourceType.TOPIC
DENIED_TOPIC = DENIED[TOPIC]
UNKNOWN_COUNT = -1
"""The number of partitions and replicas of a new topic that the client may not know."""


def _offsets(topic: Any, error: ErrorCode) -> object:
    return offsets.ListOffsetsTopicResponse(
        name=topic.name,
        partitions=tuple(
            offsets.ListOffsetsPartitionResponse(
                partition_index=each.partition_index, error_code=error
            )
            for each in topic.partitions
        ),
    )


def _epochs(topic: Any, error: ErrorCode) -> object:
    return epochs.OffsetForLeaderTopicResult(
        topic=topic.topic,
        partitions=tuple(
            epochs.EpochEndOffset(partition=each.partition, error_code=error)
            for each in topic.partitions
        ),
    )


def _deletions(topic: Any, error: ErrorCode) -> object:
    return topics.DeleteRecordsTopicResult(
        name=topic.name,
        partitions=tuple(
            topics.DeleteRecordsPartitionResult(
                partition_index=each.partition_index, low_watermark=-1, error_code=error
            )
            for each in topic.partitions
        ),
    )


def _producers(topic: Any, error: ErrorCode) -> object:
    return producers.TopicResponse(
        name=topic.name,
        partitions=tuple(
            producers.PartitionResponse(
                partition_index=each, error_code=error, error_message=error.message
            )
            for each in topic.partition_indexes
        ),
    )


def _partitions(topic: Any, error: ErrorCode) -> object:
    return topics.CreatePartitionsTopicResult(
        name=topic.name, error_code=error, error_message=error.message
    )


by_name = attrgetter("name")
list_offsets: Check = on_each(
    "topics", Operation.DESCRIBE, TOPIC, name=by_name, results="topics", denied=_offsets
)
offset_for_leader_epoch: Check = on_each(
    "topics", Operation.DESCRIBE, TOPIC, name=attrgetter("topic"), results="topics", denied=_epochs
)
delete_records: Check = on_each(
    "topics", Operation.DELETE, TOPIC, name=by_name, results="topics", denied=_deletions
)
describe_producers: Check = on_each(
    "topics", Operation.READ, TOPIC, name=by_name, results="topics", denied=_producers
)
create_partitions: Check = on_each(
    "topics", Operation.ALTER, TOPIC, name=by_name, results="results", denied=_partitions
)


def create_topics(
    permits: Permits, request: topics.CreateTopicsRequest, version: int
) -> IncrementalWork[Checked]:
    """Require CREATE on the cluster or on the topic. Without DESCRIBE_CONFIGS on a new topic, the
    answer shows neither its configs nor its size (KIP-525)."""
    wanted = request.topics
    refused: tuple[topics.CreatableTopic, ...] = ()
    if not permits.cluster(Operation.CREATE, audited=False):
        wanted, refused = yield from divided(
            request.topics, lambda each: permits.topic(Operation.CREATE, each.name)
        )
    more = tuple(
        topics.CreatableTopicResult(
            name=each.name, error_code=DENIED_TOPIC, error_message=DENIED_TOPIC.message
        )
        for each in refused
    )

    def amend(response: topics.CreateTopicsResponse) -> IncrementalWork[object]:
        pace, shown = Pace(), []
        for each in response.topics:
            if pace.is_time():
                yield
            shown.append(each if _shows(permits, each) else _without_configs(each))
        return replace(response, topics=(*shown, *more))

    return Checked(replace(request, topics=wanted) if refused else request, amend)


def _shows(permits: Permits, created: topics.CreatableTopicResult) -> bool:
    operation = Operation.DESCRIBE_CONFIGS
    return bool(created.error_code) or permits.allows(operation, TOPIC, created.name, audited=False)


def _without_configs(created: topics.CreatableTopicResult) -> topics.CreatableTopicResult:
    return replace(
        created,
        topic_config_error_code=DENIED_TOPIC,
        num_partitions=UNKNOWN_COUNT,
        replication_factor=UNKNOWN_COUNT,
        configs=(),
    )


def delete_topics(
    permits: Permits, request: topics.DeleteTopicsRequest, version: int
) -> IncrementalWork[Checked]:
    """Require DELETE on the cluster or on the topic. The answer about an id shows the topic's name
    only to clients with DESCRIBE."""
    if permits.cluster(Operation.DELETE, audited=False):
        return Checked(request)

    def allowed(each: topics.DeleteTopicState) -> bool:
        name = each.name if each.topic_id == ZERO_UUID else permits.name_of(each.topic_id)
        return name is None or permits.topic(Operation.DELETE, name)

    kept, refused = yield from divided(request.topics, allowed)
    names, others = yield from divided(
        request.topic_names, lambda each: permits.topic(Operation.DELETE, each)
    )
    if not (refused or others):
        return Checked(request)
    more = tuple(_not_deleted(permits, each) for each in refused)
    more += tuple(_not_deleted(permits, topics.DeleteTopicState(name=each)) for each in others)
    left = replace(request, topics=kept, topic_names=names)
    return Checked(left, added_to("responses", more))


def _not_deleted(permits: Permits, topic: topics.DeleteTopicState) -> topics.DeletableTopicResult:
    name = topic.name
    if topic.topic_id != ZERO_UUID:
        found = permits.name_of(topic.topic_id) or ""
        shown = permits.allows(Operation.DESCRIBE, TOPIC, found, audited=False)
        name = found if shown else None
    return topics.DeletableTopicResult(
        name=name,
        topic_id=topic.topic_id,
        error_code=DENIED_TOPIC,
        error_message=DENIED_TOPIC.message,
    )


CONFIG_TYPES = {2: ResourceType.TOPIC, 32: ResourceType.GROUP}
"""The resource types of configs that have ACLs of their own. All others belong to the cluster."""


def on_configs(operation: Operation, results: str, result: type, **fields: Sequence[Any]) -> Check:
    """Return the check of a request about the configs of resources. `result` is the class of one
    result, and `fields` are its further fields."""

    def check(permits: Permits, request: Any, version: int) -> IncrementalWork[Checked]:
        def allowed(resource: Any) -> bool:
            kind = CONFIG_TYPES.get(resource.resource_type)
            if kind is None:
                return permits.cluster(operation)
            return permits.allows(operation, kind, resource.resource_name)

        kept, refused = yield from divided(request.resources, allowed)
        if not refused:
            return Checked(request)
        more = tuple(
            result(
                error_code=_config_error(each.resource_type),
                error_message=_config_error(each.resource_type).message,
                resource_type=each.resource_type,
                resource_name=each.resource_name,
                **fields,
            )
            for each in refused
        )
        return Checked(replace(request, resources=kept), added_to(results, more))

    return check


def _config_error(resource_type: int) -> ErrorCode:
    return DENIED[CONFIG_TYPES.get(resource_type, ResourceType.CLUSTER)]
