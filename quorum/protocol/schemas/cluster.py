"""The messages DescribeCluster (KIP-700, KIP-919, KIP-1073), DescribeTopicPartitions (KIP-966) and
DescribeQuorum (KIP-595, KIP-836, KIP-853).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from quorate.quorum.ids import ZERO_UUID, Uuid
from quorate.quorum.protocol.field_bounds import (
    ERROR_TEXT,
    MAX_QUORUM_ELEMENTS,
    PARTITIONS,
    TOPIC_NAME,
    TOPICS,
)
from quorate.quorum.protocol.wire import Message, wire


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeClusterRequest(Message):
    """Asks for the nodes of the cluster. `endpoint_type` is 1 for brokers and 2 for controllers."""

    API_KEY: ClassVar[int] = 60
    include_cluster_authorized_operations: bool = wire("bool")
    endpoint_type: int = wire("int8", versions="1+", default=1)
    include_fenced_brokers: bool = wire("bool", versions="2+", default=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeClusterBroker:
    """One node of the cluster, with the address of one of its listeners."""

    broker_id: int = wire("int32")
    host: str = wire("string")
    port: int = wire("int32")
    rack: str | None = wire("string", nullable="0+", default=None)
    is_fenced: bool = wire("bool", versions="2+", default=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeClusterResponse(Message):
    """The nodes, the cluster id and the active controller."""

    API_KEY: ClassVar[int] = 60
    throttle_time_ms: int = wire("int32", default=0)
    error_code: int = wire("int16", default=0)
    error_message: str | None = wire("string", nullable="0+", bound=ERROR_TEXT, default=None)
    endpoint_type: int = wire("int8", versions="1+", default=1)
    cluster_id: str = wire("string")
    controller_id: int = wire("int32", default=-1)
    brokers: tuple[DescribeClusterBroker, ...] = wire()
    cluster_authorized_operations: int = wire("int32", default=-2147483648)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRequest:
    """A topic to describe."""

    name: str = wire("string", bound=TOPIC_NAME)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """The first partition of the next page."""

    topic_name: str = wire("string", bound=TOPIC_NAME)
    partition_index: int = wire("int32")


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeTopicPartitionsRequest(Message):
    """Asks for one page of partitions. No topics means all topics."""

    API_KEY: ClassVar[int] = 75
    topics: tuple[TopicRequest, ...] = wire(count=TOPICS)
    response_partition_limit: int = wire("int32", default=2000)
    cursor: Cursor | None = wire(nullable="0+", default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeTopicPartitionsResponsePartition:
    """The state of one partition."""

    error_code: int = wire("int16", default=0)
    partition_index: int = wire("int32")
    leader_id: int = wire("int32")
    leader_epoch: int = wire("int32", default=-1)
    replica_nodes: tuple[int, ...] = wire("int32")
    isr_nodes: tuple[int, ...] = wire("int32")
    eligible_leader_replicas: tuple[int, ...] | None = wire("int32", nullable="0+", default=None)
    last_known_elr: tuple[int, ...] | None = wire("int32", nullable="0+", default=None)
    offline_replicas: tuple[int, ...] = wire("int32", default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeTopicPartitionsResponseTopic:
    """The described partitions of one topic."""

    error_code: int = wire("int16", default=0)
    name: str | None = wire("string", nullable="0+")
    topic_id: Uuid = wire("uuid", default=ZERO_UUID)
    is_internal: bool = wire("bool", default=False)
    partitions: tuple[DescribeTopicPartitionsResponsePartition, ...] = wire()
    topic_authorized_operations: int = wire("int32", default=-2147483648)


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeTopicPartitionsResponse(Message):
    """One page of partitions. `next_cursor` is None on the last page."""

    API_KEY: ClassVar[int] = 75
    throttle_time_ms: int = wire("int32", default=0)
    topics: tuple[DescribeTopicPartitionsResponseTopic, ...] = wire()
    next_cursor: Cursor | None = wire(nullable="0+", default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumPartition:
    """A partition to describe. Only partition 0 of the metadata topic has a quorum."""

    partition_index: int = wire("int32")


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumTopic:
    """A topic to describe."""

    topic_name: str = wire("string", bound=TOPIC_NAME)
    partitions: tuple[QuorumPartition, ...] = wire(count=PARTITIONS)


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeQuorumRequest(Message):
    """Asks for the state of the metadata quorum."""

    API_KEY: ClassVar[int] = 55
    MAX_ELEMENTS: ClassVar[int] = MAX_QUORUM_ELEMENTS
    topics: tuple[QuorumTopic, ...] = wire(count=TOPICS)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumReplicaState:
    """The progress of one voter or observer, as the leader of the quorum knows it. Timestamps are
    in ms since 1970, or -1 if they are unknown."""

    replica_id: int = wire("int32")
    replica_directory_id: Uuid = wire("uuid", versions="2+", default=ZERO_UUID)
    log_end_offset: int = wire("int64")
    last_fetch_timestamp: int = wire("int64", versions="1+", default=-1)
    last_caught_up_timestamp: int = wire("int64", versions="1+", default=-1)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumPartitionState:
    """The state of the quorum: leader, high watermark, voters and observers."""

    partition_index: int = wire("int32")
    error_code: int = wire("int16", default=0)
    error_message: str | None = wire(
        "string", versions="2+", nullable="0+", bound=ERROR_TEXT, default=None
    )
    leader_id: int = wire("int32")
    leader_epoch: int = wire("int32")
    high_watermark: int = wire("int64")
    current_voters: tuple[QuorumReplicaState, ...] = wire()
    observers: tuple[QuorumReplicaState, ...] = wire()


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumTopicState:
    """The partitions of the metadata topic."""

    topic_name: str = wire("string")
    partitions: tuple[QuorumPartitionState, ...] = wire()


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumListener:
    """One listener of a controller."""

    name: str = wire("string", versions="2+", default="")
    host: str = wire("string", versions="2+", default="")
    port: int = wire("uint16", versions="2+", default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumNode:
    """The listeners of one controller."""

    node_id: int = wire("int32", versions="2+", default=0)
    listeners: tuple[QuorumListener, ...] = wire(versions="2+", default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeQuorumResponse(Message):
    """The state of the metadata quorum, and the addresses of its controllers."""

    API_KEY: ClassVar[int] = 55
    error_code: int = wire("int16", default=0)
    error_message: str | None = wire(
        "string", versions="2+", nullable="0+", bound=ERROR_TEXT, default=None
    )
    topics: tuple[QuorumTopicState, ...] = wire()
    nodes: tuple[QuorumNode, ...] = wire(versions="2+", default=())
