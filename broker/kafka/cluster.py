"""DescribeCluster (60) and DescribeTopicPartitions (75): the cluster as admin clients want it
described."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from quorate.broker.kafka.metadata import TOPIC_ENTRIES, describe_partition
from quorate.quorum.ids import NO_NODE
from quorate.quorum.metadata.image import MetadataImage, Topic
from quorate.quorum.metadata.internal_topics import INTERNAL_TOPICS
from quorate.quorum.metadata.steps import Pace, in_order
from quorate.quorum.protocol.authorized_operations import (
    CLUSTER_OPERATIONS,
    NOT_ASKED,
    TOPIC_OPERATIONS,
)
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.cluster import (
    Cursor,
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from quorate.quorum.rpc.kafka.server import RequestContext
from quorate.quorum.steps import Steps, begun

BROKERS = 1  # endpoint types of KIP-919
MAX_PARTITIONS_PER_ANSWER = 2000  # max.request.partition.size.limit


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterHandler:
    cluster_id: str
    listener: str
    image: Callable[[], MetadataImage]

    def describe_cluster(self, context: RequestContext, request: DescribeClusterRequest) -> None:
        if request.endpoint_type != BROKERS:
            context.respond(
                DescribeClusterResponse(
                    error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE,
                    error_message="this is a broker: controllers are described by controllers "
                    "(--bootstrap-controller)",
                    cluster_id=self.cluster_id,
                    brokers=(),
                )
            )
            return
        image = self.image()
        brokers = []
        for broker_id in image.broker_ids():
            broker = image.brokers[broker_id]
            endpoint = broker.endpoint(self.listener)
            if endpoint is None or (broker.fenced and not request.include_fenced_brokers):
                continue
            brokers.append(
                DescribeClusterBroker(
                    broker_id=broker_id,
                    host=endpoint.host,
                    port=endpoint.port,
                    rack=broker.rack,
                    is_fenced=broker.fenced,
                )
            )
        alive = [each.broker_id for each in brokers if not each.is_fenced]
        context.respond(
            DescribeClusterResponse(
                cluster_id=self.cluster_id,
                controller_id=alive[0] if alive else NO_NODE,
                brokers=tuple(brokers),
                cluster_authorized_operations=CLUSTER_OPERATIONS
                if request.include_cluster_authorized_operations
                else NOT_ASKED,
            )
        )

    def describe_topic_partitions(
        self, context: RequestContext, request: DescribeTopicPartitionsRequest
    ) -> Steps[None] | None:
        return begun(self._describe_topic_partitions(context, request))

    def _describe_topic_partitions(
        self, context: RequestContext, request: DescribeTopicPartitionsRequest
    ) -> Steps[None]:
        """Topics in name order from the cursor on, as many partitions as the limit allows."""
        image = self.image()
        cursor = request.cursor
        if cursor is not None and cursor.partition_index < 0:
            context.fail(ErrorCode.INVALID_REQUEST, f"cursor {cursor} is before partition 0")
            return
        named = {each.name for each in request.topics}
        names = yield from in_order(named or image.topic_ids)
        pace = Pace()
        left = max(1, min(request.response_partition_limit, MAX_PARTITIONS_PER_ANSWER))
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
                if cursor is None or cursor.topic_name != name:
                    topics.append(unknown(name))
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
            yield DescribeTopicPartitionsResponsePartition(
                error_code=common.error_code,
                partition_index=index,
                leader_id=common.leader_id,
                leader_epoch=common.leader_epoch,
                replica_nodes=common.replica_nodes,
                isr_nodes=common.isr_nodes,
                eligible_leader_replicas=partition.elr,
                last_known_elr=partition.last_known_elr,
                offline_replicas=common.offline_replicas,
            )


def unknown(name: str) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        name=name,
        partitions=(),
        topic_authorized_operations=TOPIC_OPERATIONS,
    )
