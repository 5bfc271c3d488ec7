"""The checks of requests that describe the cluster, its topics and their partitions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from quorate.quorum.authorization.check import (
    ITEM_ENTRIES,
    Checked,
    divided,
)
from quorate.quorum.authorization.permits import DENIED, Permits
from quorate.quorum.ids import ZERO_UUID
from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.metadata.internal_topics import INTERNAL_TOPICS
from quorate.quorum.metadata.pace import Pace
from quorate.quorum.protocol.acl_codes import CLUSTER_NAME, Operation, ResourceType
from quorate.quorum.protocol.authorized_operations import NOT_REQUESTED
from quorate.quorum.protocol.schemas import cluster
from quorate.quorum.protocol.schemas.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from quorate.quorum.protocol.schemas.page_cursor import is_invalid_cursor

TOPIC = ResourceType.TOPIC
DENIED_TOPIC = DENIED[TOPIC]


def metadata(permits: Permits, request: MetadataRequest, version: int) -> IncrementalWork[Checked]:
    """Check a request of Metadata on a broker that creates topics.

    If the request may create topics, it needs CREATE on the cluster or on each name that no topic
    has."""
    return _metadata(permits, request, version, creates=request.allow_auto_topic_creation)


def metadata_without_creation(
    permits: Permits, request: MetadataRequest, version: int
) -> IncrementalWork[Checked]:
    """Check a request of Metadata on a broker that creates no topics."""
    return _metadata(permits, request, version, creates=False)


def _metadata(
    permits: Permits, request: MetadataRequest, version: int, *, creates: bool
) -> IncrementalWork[Checked]:
    """Require DESCRIBE on each named topic. Leave other topics out if all are asked for. Brokers
    and the cluster id are shown to every client."""
    every = request.topics is None or (version == 0 and not request.topics)
    named: tuple[MetadataRequestTopic, ...] = ()
    refused: tuple[MetadataRequestTopic, ...] = ()
    if not every:
        named, refused = yield from divided(
            request.topics or (), lambda each: _may_describe(permits, each)
        )
        if creates and not permits.cluster(Operation.CREATE, audited=False):
            named, others = yield from divided(named, lambda each: _may_create(permits, each))
            refused += others
    more = tuple(_denied(each, named_by_id=each.topic_id != ZERO_UUID) for each in refused)
    # Version 0 asks for all topics with an empty list. The amendment then drops all of them.
    nothing_left = not every and not named

    def amend(response: MetadataResponse) -> IncrementalWork[object]:
        pace, shown = Pace(), []
        for topic in () if nothing_left else response.topics:
            if pace.is_time(ITEM_ENTRIES):
                yield
            visible = not every or permits.allows(
                Operation.DESCRIBE, TOPIC, topic.name or "", audited=False
            )
            if visible:
                shown.append(_with_operations(permits, topic))
        return replace(
            response,
            topics=(*shown, *more),
            cluster_authorized_operations=cluster_operations(
                permits, response.cluster_authorized_operations
            ),
        )

    return Checked(replace(request, topics=named) if refused else request, amend)


def _may_describe(permits: Permits, topic: MetadataRequestTopic) -> bool:
    name = topic.name if topic.topic_id == ZERO_UUID else permits.name_of(topic.topic_id)
    return name is None or permits.topic(Operation.DESCRIBE, name)


def _may_create(permits: Permits, topic: MetadataRequestTopic) -> bool:
    name = topic.name
    if name is None or topic.topic_id != ZERO_UUID or permits.image.topic(name) is not None:
        return True
    return permits.topic(Operation.CREATE, name)


def _denied(topic: MetadataRequestTopic, *, named_by_id: bool) -> MetadataResponseTopic:
    """Return the answer about a topic that the client may not describe or create. A client that
    knows only its id does not learn its name."""
    return MetadataResponseTopic(
        error_code=DENIED_TOPIC,
        name=None if named_by_id else topic.name,
        topic_id=topic.topic_id if named_by_id else ZERO_UUID,
        is_internal=not named_by_id and topic.name in INTERNAL_TOPICS,
        partitions=(),
    )


def _with_operations(permits: Permits, topic: MetadataResponseTopic) -> MetadataResponseTopic:
    if topic.topic_authorized_operations == NOT_REQUESTED:
        return topic
    operations = permits.operations(TOPIC, topic.name or "")
    return replace(topic, topic_authorized_operations=operations)


def cluster_operations(permits: Permits, asked: int) -> int:
    """Return the bit field of the client's operations on the cluster, or NOT_REQUESTED if `asked`
    is. Without DESCRIBE on the cluster it is 0."""
    if asked == NOT_REQUESTED:
        return asked
    if not permits.cluster(Operation.DESCRIBE, audited=False):
        return 0
    return permits.operations(ResourceType.CLUSTER, CLUSTER_NAME)


def describe_cluster(
    permits: Permits, request: cluster.DescribeClusterRequest, version: int
) -> IncrementalWork[Checked]:
    """Let every client describe the cluster, with its own operations."""
    yield from ()

    def amend(response: cluster.DescribeClusterResponse) -> IncrementalWork[object]:
        yield from ()
        operations = cluster_operations(permits, response.cluster_authorized_operations)
        return replace(response, cluster_authorized_operations=operations)

    return Checked(request, amend if request.include_cluster_authorized_operations else None)


def describe_topic_partitions(
    permits: Permits, request: cluster.DescribeTopicPartitionsRequest, version: int
) -> IncrementalWork[Checked]:
    """Require DESCRIBE on each named topic.

    If no topic is named, the request names all that the client may describe, because the cursor of
    a page must not name another. A cursor at a topic that the client may not describe is removed,
    after all topics before it."""
    if is_invalid_cursor(request):
        return Checked(request)  # the handler answers without a look at a topic
    cursor = request.cursor
    first = "" if cursor is None else cursor.topic_name
    if request.topics:
        named, refused = yield from divided(
            (each for each in request.topics if each.name >= first),
            lambda each: permits.topic(Operation.DESCRIBE, each.name),
        )
    else:
        names = (cluster.TopicRequest(name=each) for each in permits.image.topic_ids)
        named, _ = yield from divided(
            names,
            lambda each: (
                each.name >= first
                and permits.allows(Operation.DESCRIBE, TOPIC, each.name, audited=False)
            ),
        )
        refused = ()
    if all(each.name != first for each in named):
        cursor = None
    more = tuple(
        cluster.DescribeTopicPartitionsResponseTopic(
            error_code=DENIED_TOPIC,
            name=each.name,
            is_internal=each.name in INTERNAL_TOPICS,
            partitions=(),
        )
        for each in sorted(refused, key=lambda each: each.name)
    )
    if not named:
        return Checked(request, answer=cluster.DescribeTopicPartitionsResponse(topics=more))

    def amend(response: cluster.DescribeTopicPartitionsResponse) -> IncrementalWork[object]:
        pace, shown = Pace(), []
        for topic in response.topics:
            if pace.is_time(ITEM_ENTRIES):
                yield
            operations = permits.operations(TOPIC, topic.name or "")
            one: Any = replace(topic, topic_authorized_operations=operations)
            shown.append(one)
        return replace(response, topics=(*more, *shown))

    return Checked(replace(request, topics=named, cursor=cursor), amend)
