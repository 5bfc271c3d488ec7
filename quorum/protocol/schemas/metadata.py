"""The Metadata messages (KIP-430, KIP-516, KIP-1102): brokers, topics and partitions, as clients
cache them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from quorate.quorum.ids import ZERO_UUID, Uuid
from quorate.quorum.protocol.field_bounds import TOPIC_NAME, TOPICS
from quorate.quorum.protocol.wire import Message, wire


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataRequestTopic:
    """A topic, by name or by id."""

    topic_id: Uuid = wire("uuid", versions="10+", default=ZERO_UUID)
    name: str | None = wire("string", nullable="10+", bound=TOPIC_NAME)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataRequest(Message):
    """Asks for topics. None means all of them; version 0 sends an empty array for that."""

    API_KEY: ClassVar[int] = 3
    topics: tuple[MetadataRequestTopic, ...] | None = wire(nullable="1+", count=TOPICS)
    allow_auto_topic_creation: bool = wire("bool", versions="4+", default=True)
    include_cluster_authorized_operations: bool = wire("bool", versions="8-10", default=False)
    include_topic_authorized_operations: bool = wire("bool", versions="8+", default=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataResponseBroker:
    """One broker, with its address on the listener of the request."""

    node_id: int = wire("int32")
    host: str = wire("string")
    port: int = wire("int32")
    rack: str | None = wire("string", versions="1+", nullable="0+", default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataResponsePartition:
    """The leader, replicas and ISR of one partition. `leader_id` is -1 if there is no leader."""

    error_code: int = wire("int16", default=0)
    partition_index: int = wire("int32")
    leader_id: int = wire("int32")
    leader_epoch: int = wire("int32", versions="7+", default=-1)
    replica_nodes: tuple[int, ...] = wire("int32")
    isr_nodes: tuple[int, ...] = wire("int32")
    offline_replicas: tuple[int, ...] = wire("int32", versions="5+", default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataResponseTopic:
    """One topic with its partitions, or its error."""

    error_code: int = wire("int16", default=0)
    name: str | None = wire("string", nullable="12+")
    topic_id: Uuid = wire("uuid", versions="10+", default=ZERO_UUID)
    is_internal: bool = wire("bool", versions="1+", default=False)
    partitions: tuple[MetadataResponsePartition, ...] = wire()
    topic_authorized_operations: int = wire("int32", versions="8+", default=-2147483648)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataResponse(Message):
    """The cluster, its brokers and the topics."""

    API_KEY: ClassVar[int] = 3
    throttle_time_ms: int = wire("int32", versions="3+", default=0)
    brokers: tuple[MetadataResponseBroker, ...] = wire()
    cluster_id: str | None = wire("string", versions="2+", nullable="0+", default=None)
    controller_id: int = wire("int32", versions="1+", default=-1)
    topics: tuple[MetadataResponseTopic, ...] = wire()
    cluster_authorized_operations: int = wire("int32", versions="8-10", default=-2147483648)
    error_code: int = wire("int16", versions="13+", default=0)
