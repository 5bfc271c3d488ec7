"""Handles DescribeTopicPartitions (API key 75): topics in pages of partitions (KIP-966)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from quorate.broker.kafka.cluster.metadata import (
    TOPIC_ENTRIES,
    describe_partition,
    why_missing,
)
from quorate.quorum.incremental_work import IncrementalWork, begun
from quorate.quorum.metadata.image import MetadataImage, Topic
from quorate.quorum.metadata.internal_topics import INTERNAL_TOPICS
from quorate.quorum.metadata.pace import Pace, in_order
from quorate.quorum.protocol.authorized_operations import NOT_REQUESTED, TOPIC_OPERATIONS
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.cluster import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from quorate.quorum.protocol.schemas.page_cursor import is_invalid_cursor
from quorate.quorum.rpc.kafka.server import RequestContext


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeTopicPartitionsHandler:
    """Handles DescribeTopicPartitions on one listener of a broker, from its committed image."""

    listener: str
    image: Callable[[], MetadataImage]
    max_partitions: int = 2000
    """max.request.partition.size.limit: the most partitions of one response."""

    def handle(
        self, context: RequestContext, request: DescribeTopicPartitionsRequest
    ) -> IncrementalWork[None] | None:
        """Respond with the named topics, or all if none is named, in name order from the cursor on.

        The response holds as many partitions as the request allows, from 1 to
        `max_partitions`, and a cursor if topics or partitions are left. A named topic that does not
        exist gets UNKNOWN_TOPIC_OR_PARTITION, or INVALID_TOPIC_EXCEPTION if no topic may have this
        name. If the cursor is invalid, each named topic gets INVALID_REQUEST. Return the steps that
        are left, or None.
        """
        return begun(self._describe_topic_partitions(context, request))

    def _describe_topic_partitions(
        self, context: RequestContext, request: DescribeTopicPartitionsRequest
    ) -> IncrementalWork[None]:
        image = self.image()
        cursor = request.cursor
        if is_invalid_cursor(request):
            error = ErrorCode.INVALID_REQUEST
            refused = tuple(failed(each.name, error, NOT_REQUESTED) for each in request.topics)
            yield from context.respond_steps(DescribeTopicPartitionsResponse(topics=refused))
            return
        named = {each.name for each in request.topics}
        names = yield from in_order(named or image.topic_ids)
        pace = Pace()
        left = max(1, min(request.response_partition_limit, self.max_partitions))
        topics = []
        next_cursor = None
        for name in names:
            if pace.is_time(TOPIC_ENTRIES):
                yield
            if cursor is not None and name < cursor.topic_name:
                continue
            if left == 0:
                next_cursor = Cursor(topic_name=name, partition_index=0)
                break
            first = cursor.partition_index if cursor and cursor.topic_name == name else 0
            topic = image.topic(name)
            if topic is None:
                topics.append(failed(name, why_missing(name)))
                continue
            wanted = [each for each in topic.partition_ids() if each >= first]
            topics.append(self._topic(image, topic, wanted[:left]))
            if len(wanted) > left:
                next_cursor = Cursor(topic_name=name, partition_index=wanted[left])
                break
            left -= len(wanted)
        yield from context.respond_steps(
            DescribeTopicPartitionsResponse(topics=tuple(topics), next_cursor=next_cursor)
        )

    def _topic(
        self, image: MetadataImage, topic: Topic, wanted: list[int]
    ) -> DescribeTopicPartitionsResponseTopic:
        return DescribeTopicPartitionsResponseTopic(
            name=topic.name,
            topic_id=topic.id,
            is_internal=topic.name in INTERNAL_TOPICS,
            partitions=tuple(self._partitions(image, topic, wanted)),
            topic_authorized_operations=TOPIC_OPERATIONS,
        )

    def _partitions(
        self, image: MetadataImage, topic: Topic, wanted: list[int]
    ) -> Iterator[DescribeTopicPartitionsResponsePartition]:
        for index in wanted:
            partition = topic.partitions[index]
            common = describe_partition(image, index, partition, self.listener)
            # As in Kafka, a partition without a leader has no error here. Metadata gives it one.
            yield DescribeTopicPartitionsResponsePartition(
                partition_index=index,
                leader_id=common.leader_id,
                leader_epoch=common.leader_epoch,
                replica_nodes=common.replica_nodes,
                isr_nodes=common.isr_nodes,
                eligible_leader_replicas=partition.elr,
                last_known_elr=partition.last_known_elr,
                offline_replicas=common.offline_replicas,
            )


def failed(
    name: str, error: ErrorCode, operations: int = TOPIC_OPERATIONS
) -> DescribeTopicPartitionsResponseTopic:
    """Return the result of a topic that is not described. `operations` is the bit field of the
    authorized operations."""
    return DescribeTopicPartitionsResponseTopic(
        error_code=error,
        name=name,
        is_internal=name in INTERNAL_TOPICS,
        partitions=(),
        topic_authorized_operations=operations,
    )
